// Package keyed provides locks, semaphores and a cache by key, for keys that are not known in advance, such as users, files
// or hosts.
//
// A map of locks under a mutex grows without bound, unless it counts the users of each lock. Here a key takes memory only
// while a task holds its lock or waits for it:
//
//	var files keyed.Mutex[string]
//	if err := files.LockContext(ctx, name); err != nil {
//		return err // the lock is not held
//	}
//	defer files.Unlock(name)
//
// A Cache loads the value of a key once for all tasks that request it during the load, and keeps the value for a limited
// time:
//
//	pages := keyed.NewCache(fetchPage, keyed.CacheOptions{TTL: time.Minute})
//	page, err := pages.Get(ctx, url)
//
// A Cache takes the place of a map and x/sync/singleflight. A load with singleflight uses the context of its first caller,
// or no context. A load of a Cache is cancelled when no task waits for it any more. An expired value takes memory until the
// next Get of any key.
//
// A key must be equal to itself. Every method with a key parameter panics if the key is NaN, because a map cannot find such
// a key again.
//
// There are no Ops. An Op has the same Guard whenever it is performed, but the lock of a key exists only while a task uses the
// key. To stop a wait for a key, end its context.
//
// Use a lazy.Lazy for a single value, and package fetch to load many keys in one request. Set CacheOptions.Max if the values of
// all keys do not fit into memory.
package keyed

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/shrinking"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A table holds a T for each key in use.
//
// Invariant: entry.users is the number of tasks that hold the T, wait for it, or are about to do so. An entry has at least
// one user; otherwise entries would pile up.
type table[K comparable, T any] struct {
	mu      atomicx.Mutex
	entries shrinking.Map[K, *entry[T]]
}

type entry[T any] struct {
	of    T
	users int
}

// Len returns the number of keys that are held or waited for.
func (t *table[K, T]) Len() int {
	suspend.Point()
	preempt.Looks(preempt.Keys)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries.Len()
}

// check panics if key is NaN, because a map cannot find such a key again.
func check[K comparable](key K) {
	if key != key {
		panic("keyed: a key that is not equal to itself, such as NaN")
	}
}

// use returns the entry of key, which it creates if necessary, and increments e.users.
func (t *table[K, T]) use(key K, make func() T) *entry[T] {
	check(key)
	preempt.Releases(preempt.Keys) // only Len can observe the change
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries.Get(key)
	if e == nil {
		e = &entry[T]{of: make()}
		t.entries.Set(key, e)
	}
	e.users++
	return e
}

// used returns the entry of key, or nil if key is not in use.
func (t *table[K, T]) used(key K) *entry[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries.Get(key)
}

// unref decrements e.users, and removes e if no user is left.
func (t *table[K, T]) unref(key K, e *entry[T]) {
	preempt.Releases(preempt.Keys)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.users--; e.users == 0 {
		t.entries.Delete(key)
	}
}

// acquire calls get with the T of key. If get returns true, the caller remains a user of the entry.
func (t *table[K, T]) acquire(key K, make func() T, get func(T) bool) {
	e := t.use(key, make)
	got := false
	defer func() {
		if !got { // get has returned false, or has panicked
			t.unref(key, e)
		}
	}()
	got = get(e.of)
}

// A Mutex provides a mutex.Mutex for each key. The zero Mutex is ready to use, with no key locked. A Mutex must not be
// copied.
type Mutex[K comparable] struct {
	table[K, *mutex.Mutex]
}

func newMutex() *mutex.Mutex { return new(mutex.Mutex) }

// Lock locks key as mutex.Mutex.Lock does.
func (m *Mutex[K]) Lock(key K) {
	m.acquire(key, newMutex, func(l *mutex.Mutex) bool { l.Lock(); return true })
}

// LockContext locks key as mutex.Mutex.LockContext does. If LockContext returns an error, the lock is not held, and the call
// leaves no entry for the key.
func (m *Mutex[K]) LockContext(ctx context.Context, key K) (err error) {
	m.acquire(key, newMutex, func(l *mutex.Mutex) bool { err = l.LockContext(ctx); return err == nil })
	return err
}

// TryLock locks key if it is free, and reports whether it did. It never suspends.
func (m *Mutex[K]) TryLock(key K) (ok bool) {
	m.acquire(key, newMutex, func(l *mutex.Mutex) bool { ok = l.TryLock(); return ok })
	return ok
}

// Unlock unlocks key. It panics, and changes nothing, if key is not locked.
func (m *Mutex[K]) Unlock(key K) {
	e := m.used(key)
	if e == nil {
		panic("keyed: Unlock of a key that is not locked")
	}
	e.of.Unlock()
	m.unref(key, e)
}

// A Semaphore provides a number of permits for each key. A Semaphore must not be copied.
type Semaphore[K comparable] struct {
	table[K, *semaphore.Semaphore]
	n int64
}

// NewSemaphore returns a Semaphore with n permits for each key. It panics if n is less than 1.
func NewSemaphore[K comparable](n int64) *Semaphore[K] {
	if n < 1 {
		panic("keyed: NewSemaphore with less than one permit")
	}
	return &Semaphore[K]{n: n}
}

func (s *Semaphore[K]) permits() *semaphore.Semaphore { return semaphore.New(s.n) }

// Acquire takes a permit for key as semaphore.Semaphore.Acquire does. If Acquire returns an error, no permit is held, and
// the call leaves no entry for the key.
func (s *Semaphore[K]) Acquire(ctx context.Context, key K) (err error) {
	s.acquire(key, s.permits, func(p *semaphore.Semaphore) bool { err = p.Acquire(ctx, 1); return err == nil })
	return err
}

// TryAcquire takes a permit for key if a permit is free and no task waits for it, and reports whether it did. It never
// suspends.
func (s *Semaphore[K]) TryAcquire(key K) (ok bool) {
	s.acquire(key, s.permits, func(p *semaphore.Semaphore) bool { ok = p.TryAcquire(1); return ok })
	return ok
}

// Release releases a permit for key. It panics, and changes nothing, if no permit for key is held.
func (s *Semaphore[K]) Release(key K) {
	e := s.used(key)
	if e == nil {
		panic("keyed: Release of a key for which no permit is held")
	}
	e.of.Release(1)
	s.unref(key, e)
}

// Package keyed has a lock, permits and a cache for each key of a set that is not known in advance: users, files,
// hosts.
//
// A map of locks under a mutex grows for good, or has to count the users of each lock. Here a key takes memory while a task holds it or waits
// for it:
//
//	var files keyed.Mutex[string]
//	if err := files.Lock(ctx, name); err != nil {
//		return err // the lock is not held
//	}
//	defer files.Unlock(name)
//
// A Cache loads the value of a key once for all tasks that need it during the load, and keeps it for a time:
//
//	pages := keyed.NewCache(fetchPage, time.Minute)
//	page, err := pages.Get(ctx, url)
//
// It replaces x/sync/singleflight and a map. A load of singleflight has the context of its first caller, or none. A
// load here ends when no task waits for it any more.
//
// A key has to equal itself. Each method that takes one panics for a NaN, which a map never finds again.
//
// Use a lazy.Lazy for one value, package fetch for many keys in one request, and a cache with a limit on its size where there are more keys
// than memory.
package keyed

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// A table has a T for each key that is in use.
//
// Invariant: users counts the tasks that hold the T, wait for it, or are about to. An entry has at least one
// user; otherwise entries would pile up.
type table[K comparable, T any] struct {
	mu      atomicx.Mutex
	entries map[K]*entry[T]
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
	return len(t.entries)
}

// check panics for a key that a map never finds again: a NaN.
func check[K comparable](key K) {
	if key != key {
		panic("keyed: a key that does not equal itself")
	}
}

// use returns the entry of key, with one user more.
func (t *table[K, T]) use(key K, make func() T) *entry[T] {
	check(key)
	preempt.Releases(preempt.Keys) // only a Len shows the difference
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[key]
	if e == nil {
		if t.entries == nil {
			t.entries = map[K]*entry[T]{}
		}
		e = &entry[T]{of: make()}
		t.entries[key] = e
	}
	e.users++
	return e
}

// used returns the entry of a key that is held, nil if it is not.
func (t *table[K, T]) used(key K) *entry[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[key]
}

// leave takes back a use.
func (t *table[K, T]) leave(key K, e *entry[T]) {
	preempt.Releases(preempt.Keys)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(t.entries, key)
	}
}

// acquire uses key for as long as get has success.
func (t *table[K, T]) acquire(key K, make func() T, get func(T) bool) {
	e := t.use(key, make)
	got := false
	defer func() {
		if !got { // cancelled, or a context has panicked
			t.leave(key, e)
		}
	}()
	got = get(e.of)
}

// A Mutex is a mutex.Mutex for each key. The zero Mutex is ready, and has no key locked. It must not be copied.
type Mutex[K comparable] struct {
	table[K, *mutex.Mutex]
}

func newMutex() *mutex.Mutex { return new(mutex.Mutex) }

// Lock locks key, as Lock of a mutex.Mutex does. If it returns an error, the lock is not held, and nothing is left of the key.
func (m *Mutex[K]) Lock(ctx context.Context, key K) (err error) {
	m.acquire(key, newMutex, func(l *mutex.Mutex) bool { err = l.Lock(ctx); return err == nil })
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
	m.leave(key, e)
}

// A Semaphore has a number of permits for each key. NewSemaphore makes a Semaphore, and it must not be copied.
type Semaphore[K comparable] struct {
	table[K, *semaphore.Semaphore]
	n int64
}

// NewSemaphore returns a Semaphore with n permits for each key. It panics if n is less than 1.
func NewSemaphore[K comparable](n int64) *Semaphore[K] {
	if n < 1 {
		panic("keyed: Semaphore without permits")
	}
	return &Semaphore[K]{n: n}
}

func (s *Semaphore[K]) permits() *semaphore.Semaphore { return semaphore.New(s.n) }

// Acquire takes a permit of key, as Acquire of a semaphore.Semaphore does. If it returns an error, no permit is held, and nothing is left
// of the key.
func (s *Semaphore[K]) Acquire(ctx context.Context, key K) (err error) {
	s.acquire(key, s.permits, func(p *semaphore.Semaphore) bool { err = p.Acquire(ctx, 1); return err == nil })
	return err
}

// TryAcquire takes a permit of key if one is free and no task waits for it, and reports whether it did. It never suspends.
func (s *Semaphore[K]) TryAcquire(key K) (ok bool) {
	s.acquire(key, s.permits, func(p *semaphore.Semaphore) bool { ok = p.TryAcquire(1); return ok })
	return ok
}

// Release gives a permit of key back. It panics, and changes nothing, if none is held.
func (s *Semaphore[K]) Release(key K) {
	e := s.used(key)
	if e == nil {
		panic("keyed: Release of a key without a permit")
	}
	e.of.Release(1)
	s.leave(key, e)
}

package keyed

import (
	"context"
	"errors"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// ErrAbandoned is the error of a Get whose load did not return. It ended its task with runtime.Goexit, or it panicked and its scheduler
// went on.
var ErrAbandoned = outcome.Named("keyed: the load did not return", suspend.ErrAbandoned)

// A Cache has the values of keys that were loaded a short time ago, or are being loaded. NewCache makes a Cache, and it must not be copied.
type Cache[K comparable, V any] struct {
	// -G> is a Get, -L> a Get that gives up, -E> the end of the load.
	//
	//	none    -G> loading  in a new task
	//	loading -G> loading  one more waits
	//	loading -L> none     the last waiter: the load is cancelled
	//	loading -L> none     the Get that has started the load, before it begins: the other waiters start again
	//	loading -E> loaded   or none, after an error or without a time to live
	//	loaded  -G> loaded   or none, and on from there, if its time is over
	//
	// Invariant: an entry that is loading, and in entries, has a Get that waits.

	load    func(ctx context.Context, key K) (V, error)
	ttl     time.Duration
	mu      atomicx.Mutex
	entries map[K]*cached[K, V]
	old     dlist.List[*cached[K, V]] // loaded entries, sorted by the end of their time
}

type cached[K comparable, V any] struct {
	key     K
	value   promise.Promise[V]
	waiting int  // the number of Gets that wait
	begun   bool // the load has begun, or never will
	loaded  bool
	cancel  func(cause error)
	until   time.Time
	at      dlist.Node[*cached[K, V]]
}

// NewCache returns a Cache that loads a missing value, and keeps it for ttl, by the clock of the task's scheduler. With a ttl
// of 0 it keeps none, and only shares a load among the tasks that wait for it. It panics if load is nil.
func NewCache[K comparable, V any](load func(ctx context.Context, key K) (V, error), ttl time.Duration) *Cache[K, V] {
	if load == nil {
		panic("keyed: Cache without a load")
	}
	return &Cache[K, V]{load: load, ttl: ttl, entries: map[K]*cached[K, V]{}}
}

// Get returns the value of key. If c does not have it, the first caller starts load in a task of its scheduler, and all callers suspend
// until it returns. All of them return its error, which is not kept.
//
// If ctx is done first, or already, Get returns the cancellation error. When the last caller has given up, the load is
// cancelled, and the next Get starts another load, maybe beside the cancelled load. The context of load has the values
// of the context of its first caller. If the scheduler of the first caller refuses the task, its Get returns the error,
// and another caller starts the load. A load must not Get its own key, as it would wait for itself.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (v V, err error) {
	suspend.Preemptible()
	preempt.Looks(preempt.Keys) // a load may go on or end
	if err := suspend.Err(ctx); err != nil {
		return v, err
	}
	for err = errLeft; err == errLeft; {
		v, err = c.get(ctx, key)
	}
	return v, err
}

// errLeft makes the waiters start again: the Get that was to start the load has given up before the load has begun. Its
// scheduler may have refused the load, or crashed, as a node of adapters/simulation does, and then the load never
// begins.
var errLeft = errors.New("keyed: the first has left")

func (c *Cache[K, V]) get(ctx context.Context, key K) (v V, err error) {
	e, first, loaded := c.enter(key)
	if loaded {
		if v, ok, err := e.value.Try(); ok {
			return v, err
		}
		return e.value.Await(ctx) // the end of the load is about to resolve it
	}
	defer func() { c.leave(e, first) }()
	if first {
		if err := c.start(ctx, e); err != nil {
			return v, err // another waiter's scheduler may take the load
		}
	}
	return e.value.Await(ctx)
}

// Forget drops the value of key. Tasks that wait for its load get the loaded value, but later tasks start another load.
func (c *Cache[K, V]) Forget(key K) {
	check(key)
	suspend.Point()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		c.dropLocked(e)
	}
}

// Len returns the number of keys that are loaded or being loaded. A value whose time is over counts until the next Get of any key.
func (c *Cache[K, V]) Len() int {
	suspend.Point()
	preempt.Looks(preempt.Keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

// enter finds the entry of key, or makes it for the caller to load. A Get waits with it from now on, unless it is loaded.
func (c *Cache[K, V]) enter(key K) (e *cached[K, V], first, loaded bool) {
	check(key)
	now := suspend.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := c.old.First(); n != nil && !now.Before(n.Value.until); n = c.old.First() {
		c.dropLocked(n.Value)
	}
	if e = c.entries[key]; e != nil && e.loaded && !now.Before(e.until) { // an entry of another clock is before e in old
		c.dropLocked(e)
		e = nil
	}
	if first = e == nil; first {
		e = &cached[K, V]{key: key}
		e.at.Value = e
		c.entries[key] = e
	}
	if !e.loaded {
		e.waiting++
	}
	return e, first, e.loaded
}

// start starts the load of e. The caller waits with e, so no Get cancels it yet.
func (c *Cache[K, V]) start(ctx context.Context, e *cached[K, V]) error {
	var v V
	returned := false
	defer func() {
		if !returned { // ctx or Go has panicked
			c.end(e, v, ErrAbandoned)
		}
	}()
	_ = suspend.Self() // panics where suspending is forbidden
	ctx, e.cancel = cancel.New(context.WithoutCancel(ctx))
	err := suspend.Here().Go(func() {
		if !c.begin(e) {
			return
		}
		err := ErrAbandoned
		defer func() { c.end(e, v, err) }()
		v, err = c.load(ctx, e.key)
	})
	returned = true
	return err
}

func (c *Cache[K, V]) begin(e *cached[K, V]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := e.begun
	e.begun = true
	return !left
}

// end ends the load: it keeps the value, or drops the entry, and resolves the promise.
func (c *Cache[K, V]) end(e *cached[K, V], v V, err error) {
	now := suspend.Now()
	preempt.Releases(preempt.Keys)
	c.mu.Lock()
	e.loaded = true
	stop := e.cancel
	e.cancel = nil // it would keep the context of the first caller alive
	switch {
	case c.entries[e.key] != e:
	case err != nil || c.ttl <= 0:
		delete(c.entries, e.key)
	default:
		e.until = now.Add(c.ttl)
		c.old.Push(&e.at)
	}
	c.mu.Unlock()
	e.value.Resolve(v, err) // this must follow the change of c: a Get that returns then finds the value kept, or the error gone
	if stop != nil {
		stop(nil)
	}
}

// leave is the end of a Get that has waited.
func (c *Cache[K, V]) leave(e *cached[K, V], first bool) {
	preempt.Releases(preempt.Keys)
	c.mu.Lock()
	e.waiting--
	last := e.waiting == 0 && !e.loaded
	left := first && !e.begun && !e.loaded
	var stop func(cause error)
	if last || left {
		e.begun = true
		stop = e.cancel // start has set it by now
		c.dropLocked(e)
	}
	c.mu.Unlock()
	if stop != nil {
		stop(nil)
	}
	if left {
		e.value.Fail(errLeft)
	}
}

// dropLocked takes e off, if it is there.
func (c *Cache[K, V]) dropLocked(e *cached[K, V]) {
	c.old.Remove(&e.at)
	if c.entries[e.key] == e {
		delete(c.entries, e.key)
	}
}

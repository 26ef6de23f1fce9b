package keyed

import (
	"context"
	"errors"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/shrinking"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// ErrAbandoned is the error of a Get whose load did not return: it panicked, or it called runtime.Goexit. After a panic the
// error also wraps a *suspend.PanicError.
var ErrAbandoned = outcome.Named("keyed: the load did not return", suspend.ErrAbandoned)

// ErrRecursive is the error of a Get that would wait for itself, because loads need each other's values. Load at least one of
// these values in another way.
var ErrRecursive = errors.New("keyed: a load that waits for itself")

// A Cache loads values by key and keeps each value for a limited time. A Cache must not be copied.
type Cache[K comparable, V any] struct {
	// -G> is a Get, -L> a Get that gives up, -E> the end of the load.
	//
	//	none    -G> loading  the load runs in a new task
	//	loading -G> loading  the Get waits for the same load
	//	loading -L> none     if no other Get waits: the load is cancelled
	//	loading -L> none     if this Get has started a load that has not begun: the other waiters start again
	//	loading -E> loaded   or none, if the load failed or ttl is 0
	//	loaded  -G> loaded   or loading, if the value has expired
	//
	// Invariant: while an entry of c.entries is loading, at least one Get waits for it.

	load    func(ctx context.Context, key K) (V, error)
	ttl     time.Duration
	mu      atomicx.Mutex
	entries shrinking.Map[K, *cached[K, V]]
	old     dlist.List[*cached[K, V]] // loaded entries, in order of expiry
}

type cached[K comparable, V any] struct {
	key     K
	value   promise.Promise[V]
	waiting int // the number of Gets that wait
	loading loading
	begun   bool // the load has begun, or never will
	inTask  bool // the load is a task of the first caller's scheduler
	loaded  bool
	cancel  func(cause error)
	until   time.Time
	at      dlist.Node[*cached[K, V]]
}

// NewCache returns a Cache that calls load for a missing value and keeps the value for ttl, by the clock of the task's
// scheduler. With a ttl of 0 the Cache keeps no value, and tasks only share a load while they wait for it. NewCache panics
// if load is nil.
func NewCache[K comparable, V any](load func(ctx context.Context, key K) (V, error), ttl time.Duration) *Cache[K, V] {
	if load == nil {
		panic("keyed: Cache without a load")
	}
	return &Cache[K, V]{load: load, ttl: ttl}
}

// Get returns the value of key. If the value is missing, the first caller starts a load, and all callers suspend until the
// load returns. If the load returns an error, all callers return it, and the error is not cached.
//
// If ctx has ended, or ends before the load ends, Get returns the cancellation error. When the last waiting caller has given
// up, the load is cancelled. The next Get then starts another load, possibly while the cancelled load is still running.
//
// A load runs on a goroutine of its own, because its callers may have different schedulers, which may be busy, or may close
// while other callers wait. The load may still be running when the Run or Close of its first caller's scheduler has returned.
// On a scheduler that repeats its runs from a seed and has a sched.Watcher, such as a simulation, the load is a task of the
// first caller. If that node crashes, another caller starts the load again. The context of a load has the values of the first
// caller's context. To load on a certain scheduler, start a task there in the load, for example with promise.Go.
//
// If the load panics, the panic goes no further than its goroutine, and each Get returns an error with the value and the stack.
// In a task the panic continues.
//
// A Get with a context that is derived from the context of a load counts as a part of the load. It returns ErrRecursive if
// loads would wait for each other in a circle. A load that calls Get with another context may wait for ever.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (v V, err error) {
	suspend.Preemptible()
	preempt.Looks(preempt.Keys) // before this call, a load may continue or end
	if err := suspend.Err(ctx); err != nil {
		return v, err
	}
	for err = errLeft; err == errLeft; {
		v, err = c.get(ctx, key)
	}
	return v, err
}

// errLeft makes the other waiters start again, because the Get that started the load has given up before the load began, or its
// node has crashed. Its scheduler may have refused the load, and then the load never begins.
var errLeft = errors.New("keyed: the first has left")

func (c *Cache[K, V]) get(ctx context.Context, key K) (v V, err error) {
	e, first, loaded := c.lookUp(key)
	if loaded {
		if v, ok, err := e.value.Try(); ok {
			return v, err
		}
		return e.value.Await(ctx) // c.finishLoad is about to resolve the promise
	}
	defer func() { c.endGet(e, first) }()
	if first {
		if err := c.start(ctx, e); err != nil {
			return v, err // another waiter starts again, and its scheduler may accept the load
		}
	}
	done, err := e.loading.waitFor(ctx)
	if err != nil {
		return v, err
	}
	defer done()
	v, err = e.value.Await(ctx)
	if first && err == errLeft {
		err = ErrAbandoned // the load has exited by itself
	}
	return v, err
}

// Forget removes the value of key. Tasks that already wait for a load of key still get its value, but later tasks start
// another load.
func (c *Cache[K, V]) Forget(key K) {
	check(key)
	suspend.Point()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries.Get(key); e != nil {
		c.dropLocked(e)
	}
}

// Len returns the number of keys that are loaded or being loaded. An expired value counts until the next Get of any key.
func (c *Cache[K, V]) Len() int {
	suspend.Point()
	preempt.Looks(preempt.Keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Len()
}

// lookUp returns the entry of key. If there is none, lookUp creates it, and the caller is first and must start the load.
// Unless the entry is loaded, lookUp counts the caller in e.waiting.
func (c *Cache[K, V]) lookUp(key K) (e *cached[K, V], first, loaded bool) {
	check(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := suspend.Now() // under the lock, like that of finishLoad; otherwise a value could be from after now
	for n := c.old.First(); n != nil && c.over(n.Value, now); n = c.old.First() {
		c.dropLocked(n.Value)
	}
	if e = c.entries.Get(key); e != nil && e.loaded && c.over(e, now) { // an entry with another clock may be ahead of e in c.old
		c.dropLocked(e)
		e = nil
	}
	if first = e == nil; first {
		e = &cached[K, V]{key: key}
		e.at.Value = e
		c.entries.Set(key, e)
	}
	if !e.loaded {
		e.waiting++
	}
	return e, first, e.loaded
}

// over reports whether the time of e is over. If the clock has gone back to before the load, the time is over, too: in a bubble,
// a value of the real time would never expire.
func (c *Cache[K, V]) over(e *cached[K, V], now time.Time) bool {
	return !now.Before(e.until) || e.until.Sub(now) > c.ttl
}

// start starts the load of e. The caller is counted in e.waiting, so no other Get cancels the load during start.
func (c *Cache[K, V]) start(ctx context.Context, e *cached[K, V]) error {
	returned := false
	defer func() {
		if !returned { // a method of ctx has panicked, or Go has
			var none V
			c.finishLoad(e, none, errLeft)
		}
	}()
	_ = suspend.Self() // Self panics where suspending is forbidden
	ctx, e.cancel = cancel.New(context.WithValue(context.WithoutCancel(ctx), loadingKey{}, &e.loading))
	on := suspend.Here()
	if _, e.inTask = suspend.As[sched.Watcher](on); !e.inTask {
		on = suspend.Goroutines
	}
	err := on.Go(func() { c.run(ctx, e) })
	returned = true
	return err
}

// run calls the load, unless the first caller has left before.
func (c *Cache[K, V]) run(ctx context.Context, e *cached[K, V]) {
	if !c.markBegun(e) {
		return
	}
	if ledger.On() {
		ledger.Took(e, 1, 1, 0)
	}
	var v V
	var err error
	outcome.Of(func() { v, err = c.load(ctx, e.key) }, func(o outcome.Outcome) {
		switch {
		case o.Exited() && e.inTask:
			err = errLeft // the task may have been killed with its node
		case !o.Returned():
			err = abandoned.Error(ErrAbandoned, o.Value())
		}
		if ledger.On() {
			ledger.Gave(e, 1)
		}
		c.finishLoad(e, v, err)
		if e.inTask && !o.Exited() {
			o.Rethrow()
		}
	})
}

func (c *Cache[K, V]) markBegun(e *cached[K, V]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := e.begun
	e.begun = true
	return !left
}

// finishLoad records the end of a load: it keeps the value or removes the entry, and then resolves the promise.
func (c *Cache[K, V]) finishLoad(e *cached[K, V], v V, err error) {
	preempt.Releases(preempt.Keys)
	c.mu.Lock()
	now := suspend.Now()
	e.loaded = true
	stop := e.cancel
	e.cancel = nil // otherwise e would keep the first caller's context alive
	switch {
	case c.entries.Get(e.key) != e:
	case err != nil || c.ttl <= 0:
		c.entries.Delete(e.key)
	default:
		e.until = now.Add(c.ttl)
		c.old.Push(&e.at)
	}
	c.mu.Unlock()
	e.loading.ended.Store(true)
	e.value.Resolve(v, err) // comes after the change of c, so that a later Get finds the kept value, or no entry
	if stop != nil {
		stop(nil)
	}
}

// endGet ends a Get that has waited. It cancels the load if no other Get waits, or if this Get has started the load and the
// load has not begun.
func (c *Cache[K, V]) endGet(e *cached[K, V], first bool) {
	preempt.Releases(preempt.Keys)
	c.mu.Lock()
	e.waiting--
	last := e.waiting == 0 && !e.loaded
	left := first && !e.begun && !e.loaded
	var stop func(cause error)
	if last || left {
		e.begun = true
		stop = e.cancel // start has already set e.cancel
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

// dropLocked removes e from c.old and c.entries. It has no effect if e has been removed already.
func (c *Cache[K, V]) dropLocked(e *cached[K, V]) {
	c.old.Remove(&e.at)
	if c.entries.Get(e.key) == e {
		c.entries.Delete(e.key)
	}
}

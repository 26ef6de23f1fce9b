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

// errAbandoned is the error of a Get whose load did not return: it panicked, or it called runtime.Goexit. After a panic the
// error also wraps a *suspend.PanicError.
var errAbandoned = outcome.Named("keyed: the load did not return", suspend.ErrAbandoned)

// ErrRecursive is the error of a Get that would wait for itself, because loads need each other's values. Load at least one of
// these values in another way.
var ErrRecursive = errors.New("keyed: a load waits for itself")

// CacheOptions configure a Cache.
type CacheOptions struct {
	// TTL says how long a value is kept, by the clock of the task's scheduler. With 0 the Cache keeps no value, and only shares loads. With
	// math.MaxInt64 a value never expires.
	TTL time.Duration
	Max int // the largest number of values that are kept; 0 means no limit
}

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
	//	loaded  -E> none     if Max values are kept, and the last Get of this value is longest ago
	//
	// Invariant: while an entry of c.entries is loading, at least one Get waits for it.

	load    func(ctx context.Context, key K) (V, error)
	o       CacheOptions
	mu      atomicx.Mutex
	entries shrinking.Map[K, *cached[K, V]]
	old     dlist.List[*cached[K, V]] // loaded entries, in order of expiry
	used    dlist.List[*cached[K, V]] // loaded entries, in the order of the last Gets
	stats   CacheStats                // all but Loading
}

type cached[K comparable, V any] struct {
	key     K
	value   promise.Promise[V]
	waiting int  // the number of Gets that wait
	load    load // what this load waits for, see cycle.go
	begun   bool // the load has begun, or never will
	inTask  bool // the load is a task of the first caller's scheduler
	loaded  bool
	cancel  func(cause error)
	until   time.Time
	at      dlist.Node[*cached[K, V]] // a node of Cache.old
	use     dlist.Node[*cached[K, V]] // a node of Cache.used
}

// NewCache returns a Cache that calls load for a missing value. NewCache panics if load is nil, TTL or Max is negative, or there is
// a Max without a TTL, since such a Cache would keep nothing.
//
// If a load ends while Max values are kept, the Cache drops the value whose last Get is longest ago. A Get that is about to return this
// value still returns it. Loads do not count for Max: there are at most as many as there are waiting tasks, and those that were cancelled and
// still run.
func NewCache[K comparable, V any](load func(ctx context.Context, key K) (V, error), o CacheOptions) *Cache[K, V] {
	if load == nil {
		panic("keyed: NewCache with a nil function")
	}
	if o.Max < 0 {
		panic("keyed: negative Max")
	}
	if o.TTL < 0 {
		panic("keyed: negative TTL")
	}
	if o.Max > 0 && o.TTL == 0 {
		panic("keyed: Max needs a TTL")
	}
	return &Cache[K, V]{load: load, o: o}
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
// If the load panics or calls runtime.Goexit, each Get returns an error that is suspend.ErrAbandoned. A panic goes no further than the
// goroutine of the load, and the error then also wraps a *suspend.PanicError. In a task the panic continues.
//
// A Get with a context that is derived from the context of a load counts as a part of the load. It returns ErrRecursive if
// loads would wait for each other in a cycle. A load that calls Get with another context may wait for ever.
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
var errLeft = errors.New("keyed: the caller that started the load has given up")

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
	done, err := e.load.waitFor(ctx)
	if err != nil {
		return v, err
	}
	defer done()
	v, err = e.value.Await(ctx)
	if first && err == errLeft {
		err = errAbandoned // the load has exited by itself
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

// CacheStats holds the number of values and loads of a Cache at one moment, and the numbers of some events since NewCache.
type CacheStats struct {
	Kept    int // values that are kept; an expired value counts until the next Get of any key
	Loading int // loads that later Gets would share; a load whose key was forgotten does not count

	Hits    int // Gets that have found a value
	Shared  int // Gets that have found a load
	Loads   int // Gets that have started a load
	Evicted int // values that were dropped because of Max
}

// Stats returns the current numbers. A Get that waits counts already, and counts again if it starts again since the first caller of its load
// has given up. Stats never suspends.
func (c *Cache[K, V]) Stats() CacheStats {
	suspend.Point()
	preempt.Looks(preempt.Keys)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Loading = c.entries.Len() - s.Kept
	return s
}

// lookUp returns the entry of key. If there is none, lookUp creates it, and the caller is first and must start the load.
// Unless the entry is loaded, lookUp counts the caller in e.waiting.
func (c *Cache[K, V]) lookUp(key K) (e *cached[K, V], first, loaded bool) {
	check(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := suspend.Now() // under the lock, like that of finishLoad; otherwise a value could be from after now
	c.dropOldLocked(now)
	if e = c.entries.Get(key); e != nil && e.loaded && c.over(e, now) { // an entry with another clock may be ahead of e in c.old
		c.dropLocked(e)
		e = nil
	}
	if first = e == nil; first {
		e = &cached[K, V]{key: key}
		e.at.Value, e.use.Value = e, e
		c.entries.Set(key, e)
	}
	switch {
	case e.loaded:
		c.stats.Hits++
		c.used.Remove(&e.use)
		c.used.Push(&e.use)
		return e, false, true
	case first:
		c.stats.Loads++
	default:
		c.stats.Shared++
	}
	e.waiting++
	return e, first, false
}

// dropOldLocked drops the values that have expired.
func (c *Cache[K, V]) dropOldLocked(now time.Time) {
	for n := c.old.First(); n != nil && c.over(n.Value, now); n = c.old.First() {
		c.dropLocked(n.Value)
	}
}

// over reports whether the time of e is over. If the clock has gone back to before the load, the time is over, too: in a bubble,
// a value of the real time would never expire.
func (c *Cache[K, V]) over(e *cached[K, V], now time.Time) bool {
	return !now.Before(e.until) || e.until.Sub(now) > c.o.TTL
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
	ctx, e.cancel = cancel.New(context.WithValue(context.WithoutCancel(ctx), loadKey{}, &e.load))
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
	ledger.Took(e)
	var v V
	var err error
	outcome.Of(func() { v, err = c.load(ctx, e.key) }, func(o outcome.Outcome) {
		switch {
		case o.Exited() && e.inTask:
			err = errLeft // the task may have been killed with its node
		case !o.Returned():
			err = abandoned.Error(errAbandoned, o.Value())
		}
		ledger.Gave(e)
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
	case err != nil || c.o.TTL == 0:
		c.entries.Delete(e.key)
	default:
		e.until = now.Add(c.o.TTL)
		c.keepLocked(e, now)
	}
	c.mu.Unlock()
	e.load.ended.Store(true)
	e.value.Resolve(v, err) // comes after the change of c, so that a later Get finds the kept value, or no entry
	if stop != nil {
		stop(nil)
	}
}

// keepLocked keeps e. If there is no room, it drops the values that have expired, or else the value whose last Get is longest ago.
func (c *Cache[K, V]) keepLocked(e *cached[K, V], now time.Time) {
	if c.o.Max > 0 && c.stats.Kept >= c.o.Max {
		c.dropOldLocked(now)
		if c.stats.Kept >= c.o.Max {
			c.dropLocked(c.used.First().Value)
			c.stats.Evicted++
		}
	}
	c.old.Push(&e.at)
	c.used.Push(&e.use)
	c.stats.Kept++
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

// dropLocked removes e from the lists and from c.entries. It has no effect if e has been removed already.
func (c *Cache[K, V]) dropLocked(e *cached[K, V]) {
	if c.old.Remove(&e.at) {
		c.used.Remove(&e.use)
		c.stats.Kept--
	}
	if c.entries.Get(e.key) == e {
		c.entries.Delete(e.key)
	}
}

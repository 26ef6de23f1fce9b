package integration_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/watch"
)

// A passage moves values through a primitive. Each of its steps runs in a task of its own: the next step begins when the one
// before waits or has ended. The object and all tasks stay alive afterwards.
type passage struct {
	name  string
	open  func() (object any, steps []func(ctx context.Context, v *schedtest.Object))
	stays int // the number of values that the object may keep
}

type value = *schedtest.Object

var passages = []passage{
	{"mvar, a taker waits", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(context.Context, value) { _, _ = m.Take(bg) },
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
		}
	}, 0},
	{"mvar, a reader and a taker wait", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(context.Context, value) { _, _ = m.Read(bg) },
			func(context.Context, value) { _, _ = m.Take(bg) },
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
		}
	}, 0},
	{"mvar, a putter waits", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
			func(context.Context, value) { _, _ = m.Take(bg) },
			func(context.Context, value) { _, _ = m.Take(bg) },
		}
	}, 0},
	{"mvar, a cancelled putter", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
			func(ctx context.Context, v value) { _ = m.Put(ctx, v) },
		}
	}, 1},
	{"mvar, a putter that is cancelled lazily, and met", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(_ context.Context, v value) { _ = m.Put(bg, v) },
			func(ctx context.Context, v value) {
				ctx, end := cancel.New(ctx)
				_ = suspend.Goroutines.Go(func() { suspend.Yield(); end(nil) })
				_ = m.Put(suspend.Lazily(ctx), v)
			},
			func(context.Context, value) { _, _ = m.Take(bg) },
			func(context.Context, value) { _, _ = m.TryTake() },
		}
	}, 0},
	{"mvar, a swapper that is cancelled", func() (any, []func(context.Context, value)) {
		m := mvar.New[value]()
		return m, []func(context.Context, value){
			func(ctx context.Context, v value) { _, _ = m.Swap(ctx, v) },
			func(_ context.Context, v value) { _ = m.TryPut(v) },
			func(_ context.Context, v value) { _ = m.TryPut(v) },
			func(context.Context, value) { _, _ = m.TryTake() },
		}
	}, 0},
	{"chanx, through the buffer", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](2)
		send := func(_ context.Context, v value) { _ = c.Send(bg, v) }
		recv := func(context.Context, value) { _, _ = c.Recv(bg) }
		return c, []func(context.Context, value){send, send, send, recv, recv, recv, recv, send}
	}, 0},
	{"chanx, meeting", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		send := func(_ context.Context, v value) { _ = c.Send(bg, v) }
		recv := func(context.Context, value) { _, _ = c.Recv(bg) }
		return c, []func(context.Context, value){send, recv, recv, send}
	}, 0},
	{"chanx, a cancelled sender", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		return c, []func(context.Context, value){func(ctx context.Context, v value) { _ = c.Send(ctx, v) }}
	}, 0},
	{"chanx, closed under a sender", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](1)
		return c, []func(context.Context, value){
			func(_ context.Context, v value) { _ = c.Send(bg, v) },
			func(_ context.Context, v value) { _ = c.Send(bg, v) },
			func(context.Context, value) { _ = c.Close() },
		}
	}, 1},
	{"chanx, refused", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		return c, []func(context.Context, value){func(_ context.Context, v value) { _, _ = c.TrySend(v) }}
	}, 0},
	{"a Select that sends", func() (any, []func(context.Context, value)) {
		c, d := chanx.New[value](0), chanx.New[value](0)
		return []any{c, d}, []func(context.Context, value){
			func(_ context.Context, v value) {
				_, _ = suspend.Select(bg, suspend.CaseOf(c.SendOp(v)), suspend.CaseOf(d.SendOp(v)))
			},
			func(context.Context, value) {
				_, _ = suspend.Select(bg, suspend.CaseOf(c.RecvOp()), suspend.CaseOf(d.RecvOp()))
			},
		}
	}, 0},
	{"a Select that sends, cancelled", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		return c, []func(context.Context, value){
			func(ctx context.Context, v value) { _, _ = suspend.Select(ctx, suspend.CaseOf(c.SendOp(v))) },
		}
	}, 0},
	{"a Then that sends, cancelled", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		return c, []func(context.Context, value){
			func(ctx context.Context, v value) {
				suspend.Then(ctx, c.SendOp(v), anywhere{}, func(struct{}, error) {})
			},
		}
	}, 0},
	{"a Then that receives", func() (any, []func(context.Context, value)) {
		c := chanx.New[value](0)
		return c, []func(context.Context, value){
			func(context.Context, value) {
				suspend.Then(bg, c.RecvOp(), anywhere{}, func(value, error) {})
			},
			func(_ context.Context, v value) { _ = c.Send(bg, v) },
		}
	}, 0},
	{"promise, filled before and again", func() (any, []func(context.Context, value)) {
		p := promise.New[value]()
		return p, []func(context.Context, value){
			func(_ context.Context, v value) { _ = p.Fill(v) },
			func(_ context.Context, v value) { _ = p.Fill(v) },
		}
	}, 1},
	{"promise, dropped by its combinations", func() (any, []func(context.Context, value)) {
		long := promise.New[value]()
		return long, []func(context.Context, value){
			func(_ context.Context, v value) {
				p := promise.New[value]()
				_ = p.Fill(v)
				_, _ = suspend.Do(bg, promise.Race(long, p))
			},
			func(ctx context.Context, _ value) { _, _ = suspend.Do(ctx, promise.Any(long)) },
		}
	}, 0},
}

// visits use primitives that carry no values. The context of each wait carries one instead.
var visits = []passage{
	{"mutex, handed over and cancelled", func() (any, []func(context.Context, value)) {
		m := new(mutex.Mutex)
		lock := func(ctx context.Context, v value) { _ = m.LockContext(carry(ctx, v)) }
		unlock := func(context.Context, value) { m.Unlock() }
		return m, []func(context.Context, value){lock, lock, lock, unlock}
	}, 0},
	{"mutex, by Then and by a Select", func() (any, []func(context.Context, value)) {
		m := new(mutex.Mutex)
		return m, []func(context.Context, value){
			func(context.Context, value) { m.Lock() },
			func(ctx context.Context, v value) {
				suspend.Then(carry(ctx, v), m.LockOp(), anywhere{}, func(struct{}, error) {})
			},
			func(ctx context.Context, v value) {
				_, _ = suspend.Select(carry(ctx, v), suspend.CaseOf(m.LockOp()), suspend.CaseOf(suspend.Done(carry(ctx, v))))
			},
			func(ctx context.Context, v value) {
				suspend.Then(carry(ctx, v), m.LockOp(), anywhere{}, func(struct{}, error) {})
			},
			func(context.Context, value) { m.Unlock() },
		}
	}, 0},
	{"rwmutex, a writer and a reader", func() (any, []func(context.Context, value)) {
		m := new(mutex.RWMutex)
		lock := func(ctx context.Context, v value) { _ = m.LockContext(carry(ctx, v)) }
		read := func(ctx context.Context, v value) { _ = m.RLockContext(carry(ctx, v)) }
		return m, []func(context.Context, value){lock, read, read, lock, read, func(context.Context, value) { m.Unlock() }}
	}, 0},
	{"semaphore, handed over and cancelled", func() (any, []func(context.Context, value)) {
		s := semaphore.New(2)
		acquire := func(ctx context.Context, v value) { _ = s.Acquire(carry(ctx, v), 2) }
		return s, []func(context.Context, value){acquire, acquire, acquire, func(context.Context, value) { s.Release(2) }}
	}, 0},
	{"cond, signalled, woken by all, and cancelled", func() (any, []func(context.Context, value)) {
		var m mutex.Mutex
		c := cond.New(&m)
		wait := func(ctx context.Context, v value) {
			c.L.Lock()
			defer c.L.Unlock()
			_ = c.Wait(carry(ctx, v))
		}
		return c, []func(context.Context, value){
			wait, wait, wait,
			func(context.Context, value) { c.Signal() },
			func(context.Context, value) { c.Broadcast() },
			wait,
		}
	}, 0},
	{"latch, opened and cancelled", func() (any, []func(context.Context, value)) {
		l, shut := latch.New(1), latch.New(1)
		return []any{l, shut}, []func(context.Context, value){
			func(ctx context.Context, v value) { _ = l.Wait(carry(ctx, v)) },
			func(ctx context.Context, v value) { _ = shut.Wait(carry(ctx, v)) },
			func(context.Context, value) { l.CountDown() },
		}
	}, 0},
	{"barrier, passed and broken", func() (any, []func(context.Context, value)) {
		b := latch.NewBarrier(2)
		wait := func(ctx context.Context, v value) { _, _ = b.Wait(carry(ctx, v)) }
		return b, []func(context.Context, value){wait, wait, wait}
	}, 0},
	{"broadcast, received, dropped and cancelled", func() (any, []func(context.Context, value)) {
		topic := broadcast.New[value]()
		one, other, slow := topic.Subscribe(1, broadcast.Wait), topic.Subscribe(1, broadcast.DropOldest), topic.Subscribe(1, broadcast.DropSubscriber)
		publish := func(ctx context.Context, v value) { _ = topic.Publish(ctx, v) }
		receive := func(sub *broadcast.Subscription[value]) func(context.Context, value) {
			return func(context.Context, value) { _, _ = sub.Recv(bg) }
		}
		return []any{topic, one, other, slow}, []func(context.Context, value){publish, publish, publish, receive(one), receive(one), receive(one), receive(slow), func(context.Context, value) { other.Close() }}
	}, 0},
	{"broadcast, lagged", func() (any, []func(context.Context, value)) {
		topic := broadcast.New[value]()
		sub := topic.Subscribe(1, broadcast.Lag)
		publish := func(ctx context.Context, v value) { _ = topic.Publish(ctx, v) }
		receive := func(context.Context, value) { _, _ = sub.Recv(bg) }
		return []any{topic, sub}, []func(context.Context, value){publish, publish, receive, receive}
	}, 0},
	{"lazy, forced, waited for and cancelled", func() (any, []func(context.Context, value)) {
		var begun promise.Promise[int]
		l := lazy.New(func(ctx context.Context) (int, error) { return begun.Await(ctx) }, lazy.Restart)
		force := func(ctx context.Context, v value) { _, _ = l.Force(carry(ctx, v)) }
		return l, []func(context.Context, value){force, force, func(context.Context, value) { _ = begun.Fill(1) }, force}
	}, 0},
	{"lazy, retried", func() (any, []func(context.Context, value)) {
		l := lazy.New(func(ctx context.Context) (int, error) { return 0, errors.New("no answer") }, lazy.Retry)
		force := func(ctx context.Context, v value) { _, _ = l.Force(carry(ctx, v)) }
		return l, []func(context.Context, value){force, force}
	}, 0},
	{"lazy, stopped", func() (any, []func(context.Context, value)) {
		l := lazy.New(func(ctx context.Context) (int, error) { return promise.New[int]().Await(ctx) }, lazy.Restart)
		force := func(ctx context.Context, v value) { _, _ = l.Force(carry(ctx, v)) }
		return l, []func(context.Context, value){force, force}
	}, 0},
	{"watch, stored, changed and cancelled", func() (any, []func(context.Context, value)) {
		v := watch.New[value](nil)
		changed := func(seen uint64) func(context.Context, value) {
			return func(ctx context.Context, arg value) { _, _ = v.Changed(carry(ctx, arg), seen) }
		}
		store := func(_ context.Context, x value) { _ = v.Store(x) }
		return v, []func(context.Context, value){
			changed(0), store, store, changed(2),
			func(ctx context.Context, x value) {
				_, _ = v.Until(carry(ctx, x), func(value) bool { return x == nil })
			},
			func(ctx context.Context, x value) {
				_, _ = suspend.Do(carry(ctx, x), v.UntilOp(func(value) bool { return x == nil }))
			},
		}
	}, 1},
	{"watch, closed", func() (any, []func(context.Context, value)) {
		v := watch.New[value](nil)
		return v, []func(context.Context, value){
			func(ctx context.Context, x value) { _, _ = v.Changed(carry(ctx, x), 0) },
			func(context.Context, value) { _ = v.Close() },
			func(_ context.Context, x value) { _ = v.Store(x) },
		}
	}, 0},
	{"rate, waited for and cancelled", func() (any, []func(context.Context, value)) {
		l := rate.NewLimiter(rate.Every(time.Hour), 1)
		wait := func(ctx context.Context, v value) { _ = l.Wait(carry(ctx, v)) }
		return l, []func(context.Context, value){wait, wait, wait, func(context.Context, value) { l.SetLimit(0) }, wait}
	}, 0},
	{"a Ticker", func() (any, []func(context.Context, value)) {
		t := rate.NewTicker(time.Hour, rate.Skip)
		tick := func(ctx context.Context, v value) { _, _ = t.Tick(carry(ctx, v)) }
		return t, []func(context.Context, value){tick, tick}
	}, 0},
	{"keyed, locked, loaded and cancelled", func() (any, []func(context.Context, value)) {
		var m keyed.Mutex[int]
		c := keyed.NewCache(func(ctx context.Context, k int) (value, error) { return nil, suspend.Sleep(ctx, time.Hour) }, keyed.CacheOptions{TTL: time.Hour})
		return []any{&m, c}, []func(context.Context, value){
			func(ctx context.Context, v value) { _ = m.LockContext(carry(ctx, v), 1) },
			func(ctx context.Context, v value) { _ = m.LockContext(carry(ctx, v), 1) },
			func(ctx context.Context, v value) { _, _ = c.Get(carry(ctx, v), 1) },
			func(ctx context.Context, v value) { _, _ = c.Get(carry(ctx, v), 1) },
		}
	}, 0},
	{"idle, waited for and cancelled", func() (any, []func(context.Context, value)) {
		g, stay := idle.New(suspend.Goroutines, nil), make(chan struct{})
		return []any{g, stay}, []func(context.Context, value){
			func(_ context.Context, v value) { _ = g.Go(func() { <-stay }) },
			func(ctx context.Context, v value) { _ = g.Wait(carry(ctx, v)) },
			func(ctx context.Context, v value) { _ = g.WaitIdle(carry(ctx, v)) },
			func(context.Context, value) { close(stay) },
		}
	}, 0},
	{"a Sleep", func() (any, []func(context.Context, value)) {
		return nil, []func(context.Context, value){
			func(ctx context.Context, v value) { _ = suspend.Sleep(carry(ctx, v), time.Hour) },
			func(ctx context.Context, v value) { _ = suspend.Sleep(carry(ctx, v), time.Microsecond) },
		}
	}, 0},
}

type carried struct{}

// carry returns ctx with a value that lives for as long as anything refers to the context.
func carry(ctx context.Context, v value) context.Context {
	return context.WithValue(ctx, carried{}, v)
}

// When a value was received, or was refused, no channel and no live task may keep it alive.
func TestNoPrimitiveRetainsAValue(t *testing.T) {
	for _, p := range slices.Concat(passages, visits) {
		t.Run(p.name, func(t *testing.T) {
			for _, place := range places {
				t.Run(place.Name, func(t *testing.T) {
					defer schedtest.Within(t, schedtest.Deadline)()
					on, closed := place.Open()
					defer closed()
					retains(t, p, on)
				})
			}
		})
	}
}

func retains(t *testing.T, p passage, on suspend.Spawner) {
	var objects schedtest.Objects
	var gate promise.Promise[int]
	object, steps := p.open()
	ctx, end := cancel.New(bg)
	one, all := done(len(steps))
	for _, step := range steps {
		_ = on.Go(func() {
			func() { step(ctx, objects.New()) }()
			one()
			_, _ = gate.Await(bg) // keeps the task alive
		})
		schedtest.Quiet(t)
	}
	end(nil)
	all()
	objects.Collected(t, p.stays)
	_ = gate.Fill(1)
	runtime.KeepAlive(object)
}

// When a waiting task was cancelled, the lock for which it waited must not keep it alive.
func TestNoPrimitiveRetainsATask(t *testing.T) {
	for _, p := range slices.Concat(passages, visits) {
		t.Run(p.name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			var values, tasks schedtest.Objects
			object, steps := p.open()
			ctx, end := cancel.New(bg)
			var all sync.WaitGroup
			for _, step := range steps {
				all.Go(func() {
					task := &trackedTask{Task: sched.NewThread()}
					tasks.Track(&task.Object)
					suspend.Bind(task, func() { step(ctx, values.New()) })
				})
				schedtest.Quiet(t)
			}
			end(nil)
			all.Wait()
			tasks.Collected(t, 0)
			values.Collected(t, p.stays)
			runtime.KeepAlive(object)
		})
	}
}

// A waiter that is cancelled behind another one, which still waits, does not stay in the queue.
func TestACancelledWaiterBehindAnother(t *testing.T) {
	m, s, r, c, v := new(mutex.Mutex), semaphore.New(2), new(mutex.RWMutex), chanx.New[int](0), new(mvar.MVar[int])
	m.Lock()
	r.RLock()
	if !s.TryAcquire(1) {
		t.Fatal("no permit is free")
	}
	for name, wait := range map[string]func(ctx context.Context) error{
		"mutex":     func(ctx context.Context) error { return m.LockContext(ctx) },
		"semaphore": func(ctx context.Context) error { return s.Acquire(ctx, 2) },
		"rwmutex":   func(ctx context.Context) error { return r.LockContext(ctx) },
		"chanx":     func(ctx context.Context) error { _, err := c.Recv(ctx); return err },
		"mvar":      func(ctx context.Context) error { _, err := v.Take(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			var tasks schedtest.Objects
			var first, second sync.WaitGroup
			stop, end := context.WithCancel(bg)
			first.Go(func() { _ = wait(stop) })
			schedtest.Quiet(t)
			ctx, cancelled := cancel.New(bg)
			second.Go(func() {
				task := &trackedTask{Task: sched.NewThread()}
				tasks.Track(&task.Object)
				suspend.Bind(task, func() { _ = wait(ctx) })
			})
			schedtest.Quiet(t)
			cancelled(nil)
			second.Wait()
			tasks.Collected(t, 0)
			end()
			first.Wait()
		})
	}
}

type trackedTask struct {
	suspend.Task
	schedtest.Object
}

// An anywhere runs each callback on a goroutine of its own.
type anywhere struct{}

func (anywhere) Execute(f func()) error { go f(); return nil }

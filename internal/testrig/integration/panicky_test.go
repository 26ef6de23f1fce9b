package integration_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A victim is an operation on an object that other tasks use, too. At first it has to wait.
type victim struct {
	do      func(ctx context.Context) error // performs the operation and undoes it at once
	op      func() suspend.Op[struct{}]     // nil if there is none
	got     func()                          // undoes op after it has been performed
	other   func(ctx context.Context) error // nil stands for do; otherwise an operation that waits only because the victim waits
	release func()                          // lets one more task continue; further calls have no effect
	whole   func() bool                     // reports after the end whether nothing is lost and no task is queued
}

func opOf[T any](op func() suspend.Op[T]) func() suspend.Op[struct{}] {
	return func() suspend.Op[struct{}] {
		return suspend.Map(op(), func(_ T, err error) (struct{}, error) { return struct{}{}, err })
	}
}

// locked returns a victim that locks a lock, which is held until free is called.
func locked(free func(), lock func(context.Context) error, unlock func(), op func() suspend.Op[struct{}], whole func() bool) victim {
	held := true
	return victim{
		do: func(ctx context.Context) error {
			err := lock(ctx)
			if err == nil {
				unlock()
			}
			return err
		},
		op: op, got: unlock,
		release: func() {
			if held {
				held = false
				free()
			}
		},
		whole: func() bool { return !held && whole() },
	}
}

var victims = map[string]func() victim{
	"mutex": func() victim {
		var m mutex.Mutex
		m.Lock()
		return locked(m.Unlock, m.LockContext, m.Unlock, m.LockOp, m.TryLock)
	},
	"rwmutex, writer": func() victim {
		var m mutex.RWMutex
		m.Lock()
		return locked(m.Unlock, m.LockContext, m.Unlock, m.LockOp, m.TryLock)
	},
	"rwmutex, reader": func() victim {
		var m mutex.RWMutex
		m.Lock()
		return locked(m.Unlock, m.RLockContext, m.RUnlock, m.RLockOp, m.TryLock)
	},
	"semaphore": func() victim {
		s := semaphore.New(2)
		_ = s.Acquire(bg, 1)
		return locked(func() { s.Release(1) }, func(ctx context.Context) error { return s.Acquire(ctx, 2) }, func() { s.Release(2) },
			func() suspend.Op[struct{}] { return s.AcquireOp(2) }, func() bool { return s.TryAcquire(2) })
	},
	"semaphore, a gate": func() victim {
		s := semaphore.New(2)
		_ = s.Acquire(bg, 1)
		v := locked(func() { s.Release(1) }, func(ctx context.Context) error { return s.Acquire(ctx, 2) }, func() { s.Release(2) },
			func() suspend.Op[struct{}] { return s.AcquireOp(2) }, func() bool { return s.TryAcquire(2) })
		v.other = locked(nil, func(ctx context.Context) error { return s.Acquire(ctx, 1) }, func() { s.Release(1) }, nil, nil).do
		return v
	},
	"rwmutex, a gate": func() victim {
		var m mutex.RWMutex
		m.RLock()
		v := locked(m.RUnlock, m.LockContext, m.Unlock, m.LockOp, m.TryLock)
		v.other = locked(nil, m.RLockContext, m.RUnlock, nil, nil).do
		return v
	},
	"mvar, take": func() victim {
		var m mvar.MVar[int]
		var put, taken atomic.Int64
		return victim{
			do: func(ctx context.Context) error {
				_, err := m.Take(ctx)
				if err == nil {
					taken.Add(1)
				}
				return err
			},
			op: opOf(m.TakeOp), got: func() { taken.Add(1) },
			release: func() {
				if m.TryPut(1) {
					put.Add(1)
				}
			},
			whole: func() bool {
				if _, ok := m.TryTake(); ok {
					taken.Add(1)
				}
				return put.Load() == taken.Load()
			},
		}
	},
	"mvar, put": func() victim {
		m := mvar.NewFull(1)
		var put, taken atomic.Int64
		put.Store(1)
		take := func() bool {
			_, ok := m.TryTake()
			if ok {
				taken.Add(1)
			}
			return ok
		}
		return victim{
			do: func(ctx context.Context) error {
				err := m.Put(ctx, 1)
				if err == nil {
					put.Add(1)
				}
				return err
			},
			op: func() suspend.Op[struct{}] { return m.PutOp(1) }, got: func() { put.Add(1) },
			release: func() { take() },
			whole: func() bool {
				for take() {
				}
				return put.Load() == taken.Load()
			},
		}
	},
	"mvar, modify": func() victim {
		var m mvar.MVar[int]
		var added atomic.Int64
		return victim{
			do: func(ctx context.Context) error {
				return m.Modify(ctx, func(n int) (int, error) {
					added.Add(1)
					return n + 1, nil
				})
			},
			release: func() {
				if _, full := m.TryRead(); !full {
					_ = m.TryPut(0)
				}
			},
			whole: func() bool { n, ok := m.TryTake(); return ok && int64(n) == added.Load() },
		}
	},
	"chanx, recv":          func() victim { return recv(1) },
	"chanx, recv, meeting": func() victim { return recv(0) },
	"chanx, send":          func() victim { return send(1) },
	"chanx, send, meeting": func() victim { return send(0) },
	"promise": func() victim {
		p := promise.New[int]()
		return once(awaits(p), opOf(p.AwaitOp), func() { _ = p.Fill(1) })
	},
	"promise, combinations": combined,
	"latch":                 func() victim { l := latch.New(1); return once(l.Wait, l.WaitOp, func() { l.CountDown() }) },
	"cond, signal":          func() victim { return condition((*cond.Cond).Signal) },
	"cond, broadcast":       func() victim { return condition((*cond.Cond).Broadcast) },
	"lazy": func() victim {
		gate := promise.New[int]()
		l := lazy.New(func(context.Context) (int, error) { return gate.Await(bg) }, lazy.Restart)
		return once(func(ctx context.Context) error { _, err := l.Force(ctx); return err }, nil, func() { _ = gate.Fill(1) })
	},
	"lazy, cancelled with the runner": func() victim {
		gate := promise.New[int]()
		l := lazy.New(func(ctx context.Context) (int, error) { return gate.Await(context.WithoutCancel(ctx)) }, lazy.Restart)
		fails := lazy.New(func(ctx context.Context) (int, error) {
			if _, err := l.Force(bg); err != nil {
				return 0, err
			}
			return 1, suspend.Err(context.WithoutCancel(ctx))
		}, lazy.Restart)
		return once(func(ctx context.Context) error { _, err := fails.Force(ctx); return err }, nil, func() { _ = gate.Fill(1) })
	},
	"lazy, stopped": func() victim {
		gate := promise.New[int]()
		var first atomic.Bool
		l := lazy.New(func(context.Context) (int, error) {
			_, _ = gate.Await(bg)
			if first.CompareAndSwap(false, true) {
				return 0, errors.New("stopped") // when the function returns, lazy checks whether its context has ended
			}
			return 1, nil
		}, lazy.Restart)
		return once(func(ctx context.Context) error {
			_, err := l.Force(ctx)
			if err != nil && err.Error() == "stopped" {
				err = nil
			}
			return err
		}, nil, func() { _ = gate.Fill(1) })
	},
	"barrier": func() victim {
		const parties = 2
		b := latch.NewBarrier(parties)
		var passed, first atomic.Int64
		party := func(ctx context.Context) error {
			index, err := b.Wait(ctx)
			for errors.Is(err, latch.ErrBroken) {
				index, err = b.Wait(ctx)
			}
			if err == nil {
				passed.Add(1)
				if index == 0 {
					first.Add(1)
				}
			}
			return err
		}
		return victim{
			do: party,
			release: func() { // one more party, if one is left
				ctx, cancel := context.WithCancel(bg)
				go func() { _ = party(ctx) }()
				synctest.Wait()
				cancel()
				synctest.Wait()
			},
			whole: func() bool { return passed.Load() == parties*first.Load() },
		}
	},
}

func recv(capacity int) victim {
	c := chanx.New[int](capacity)
	var sent, received atomic.Int64
	return victim{
		do: func(ctx context.Context) error {
			_, err := c.Recv(ctx)
			if err == nil {
				received.Add(1)
			}
			return err
		},
		op: opOf(c.RecvOp), got: func() { received.Add(1) },
		release: func() {
			if ok, _ := c.TrySend(1); ok {
				sent.Add(1)
			}
		},
		whole: func() bool { return sent.Load() == received.Load()+int64(c.Len()) },
	}
}

func send(capacity int) victim {
	c := chanx.New[int](capacity)
	var sent, received atomic.Int64
	for ok, _ := c.TrySend(1); ok; ok, _ = c.TrySend(1) {
		sent.Add(1)
	}
	return victim{
		do: func(ctx context.Context) error {
			err := c.Send(ctx, 1)
			if err == nil {
				sent.Add(1)
			}
			return err
		},
		op: func() suspend.Op[struct{}] { return c.SendOp(1) }, got: func() { sent.Add(1) },
		release: func() {
			if _, ok, _ := c.TryRecv(); ok {
				received.Add(1)
			}
		},
		whole: func() bool { return sent.Load() == received.Load()+int64(c.Len()) },
	}
}

// once returns a victim that waits for an event.
func once(do func(context.Context) error, op func() suspend.Op[struct{}], happen func()) victim {
	happened := false
	return victim{
		do: do, op: op, got: func() {},
		release: func() {
			if !happened {
				happened = true
				happen()
			}
		},
		whole: func() bool { return do(bg) == nil },
	}
}

func awaits[T any](p *promise.Promise[T]) func(ctx context.Context) error {
	return func(ctx context.Context) error { _, err := p.Await(ctx); return err }
}

func combined() victim {
	p := promise.New[int]()
	all := promise.All(p, p)
	do := func(ctx context.Context) error { _, err := suspend.Do(ctx, all); return err }
	return once(do, opOf(func() suspend.Op[[]int] { return all }), func() { _ = p.Fill(1) })
}

func condition(wake func(*cond.Cond)) victim {
	var m mutex.Mutex
	c := cond.New(&m)
	ready := false
	return victim{
		do: func(ctx context.Context) error {
			c.L.Lock()
			defer c.L.Unlock()
			for !ready {
				if err := c.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		},
		release: func() {
			if m.TryLock() {
				ready = true
				m.Unlock()
			}
			wake(c)
		},
		whole: m.TryLock,
	}
}

// A way performs an operation.
type way struct {
	name string
	run  func(v victim, ctx context.Context) error
}

// never returns an event that does not happen during the test.
func never() suspend.Op[struct{}] {
	return suspend.Map(suspend.After(10*time.Hour), func(time.Time, error) (struct{}, error) { return struct{}{}, nil })
}

// ways lists each way to perform an operation.
var ways = []way{
	{"direct", func(v victim, ctx context.Context) error { return v.do(ctx) }},
	{"Do", func(v victim, ctx context.Context) error { return v.gets(suspend.Do(ctx, v.op())) }},
	{"Do of a Choose", func(v victim, ctx context.Context) error {
		return v.gets(suspend.Do(ctx, suspend.Choose(never(), suspend.Choose(v.op(), never()))))
	}},
	{"Select of two", func(v victim, ctx context.Context) error {
		_, err := suspend.Select(ctx, suspend.CaseOf(v.op()), suspend.CaseOf(v.op()))
		return v.gets(struct{}{}, err)
	}},
	{"Select with a level", func(v victim, ctx context.Context) error {
		_, err := suspend.Select(ctx, suspend.CaseOf(suspend.After(time.Hour*10)), suspend.CaseOf(v.op()))
		return v.gets(struct{}{}, err)
	}},
	{"Select with its Done", func(v victim, ctx context.Context) error {
		over := suspend.CaseOf(suspend.Done(ctx))
		won, err := suspend.Select(bg, suspend.CaseOf(v.op()), over)
		if won == over {
			return context.Canceled
		}
		return v.gets(struct{}{}, err)
	}},
	{"Then", func(v victim, ctx context.Context) error {
		var over promise.Promise[struct{}]
		suspend.Then(ctx, v.op(), survivor{}, func(_ struct{}, err error) {
			_ = v.gets(struct{}{}, err)
			_ = over.Fill(struct{}{})
		})
		_, err := over.Await(bg)
		return err
	}},
}

// gets undoes an operation that was performed.
func (v victim) gets(_ struct{}, err error) error {
	if err == nil {
		v.got()
	}
	return err
}

// A survivor runs functions on goroutines, and recovers the panics of contexts.
type survivor struct{}

func (s survivor) Execute(f func()) error { return s.Go(f) }

func (survivor) Go(f func()) error {
	go func() {
		defer func() {
			if r := recover(); r != nil {
				harmed(r, debug.Stack())
			}
		}()
		f()
	}()
	return nil
}

// events are the things that may happen while the victim waits.
var events = map[string]func(cancel, release func()){
	"cancelled":                   func(cancel, release func()) { cancel(); synctest.Wait(); release() },
	"released":                    func(cancel, release func()) { release(); synctest.Wait(); cancel() },
	"released and then cancelled": func(cancel, release func()) { release(); cancel() },
	"cancelled and then released": func(cancel, release func()) { cancel(); release() },
	"cancelled before the others": func(cancel, release func()) {},
	"done before":                 nil,
}

// panicky lists the kinds of contexts that panic.
var panicky = map[string]func(p *schedtest.PanickyContext) context.Context{
	"foreign": func(p *schedtest.PanickyContext) context.Context { return p },
	"AfterFunc": func(p *schedtest.PanickyContext) context.Context {
		return schedtest.PanickyAfterFunc{PanickyContext: p}
	},
	"lazy": func(p *schedtest.PanickyContext) context.Context { return suspend.Lazily(p) },
}

// withPanicky calls once in a bubble, with each kind of context. The context panics in its k-th call, for each k until once does
// not reach this call, and either in this call only, or from this call on.
func withPanicky(t *testing.T, where string, once func(t *testing.T, at string, onwards bool, with panickyOf) (reached bool)) {
	for of, kind := range panicky {
		for _, onwards := range []bool{false, true} {
			for k, reached := 1, true; reached && !t.Failed(); k++ {
				at := fmt.Sprintf("%s, %s context, call %d, onwards %v", where, of, k, onwards)
				synctest.Test(t, func(t *testing.T) {
					reached = once(t, at, onwards, func(ctx context.Context) (context.Context, *schedtest.PanickyContext) {
						p := schedtest.Panicky(ctx, k, onwards)
						return kind(p), p
					})
				})
			}
		}
	}
}

// A panickyOf derives a context that panics.
type panickyOf func(ctx context.Context) (context.Context, *schedtest.PanickyContext)

// harmed handles the panic of a context from which a task withdraws when it ends.
func harmed(v any, stack []byte) {
	if v != schedtest.PanickyValue {
		panic(fmt.Sprintf("%v\n%s", v, stack))
	}
}

// places lists the places where the victim runs.
var places = []schedtest.Scheduler{
	{Name: "goroutine", Open: func() (suspend.Spawner, func()) { return suspend.Goroutines, func() {} }},
	{Name: "fifo", Open: func() (suspend.Spawner, func()) {
		s := fifo.New(fifo.Options{OnPanic: harmed})
		return s, suspendtest.Drive(s.Run)
	}},
	{Name: "pool", Open: func() (suspend.Spawner, func()) {
		p := workstealing.New(workstealing.Options{Workers: 1, OnPanic: harmed})
		return p, func() { _ = p.Close() }
	}},
}

// A context that panics in any call of its methods harms only the operation to which it was passed. Such a context may belong to
// a request that has ended. Other tasks must still be able to lock the mutex, force the lazy value, or pass the barrier.
func TestAPanickyContextHarmsItsOwnOperationOnly(t *testing.T) {
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) { eachPanic(t, w) })
	}
}

func eachPanic(t *testing.T, w way) {
	for name, open := range victims {
		if w.name != "direct" && open().op == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			for _, place := range places {
				for what := range events {
					for _, again := range []bool{false, true} {
						where := fmt.Sprintf("on a %s, %s, again %v", place.Name, what, again)
						withPanicky(t, where, func(t *testing.T, at string, onwards bool, with panickyOf) (reached bool) {
							switch { // earlier waits and places matter only in direct calls
							case w.name != "direct" && (again || place.Name == "pool" || onwards != (place.Name == "fifo")):
								return false
							case place.Name == "pool" && (onwards || again), place.Name == "fifo" && onwards != again:
								return false
							}
							return panicOnce(t, at, place, open, w, with, what, again)
						})
					}
				}
			}
		})
	}
}

// panicOnce runs a victim and two other tasks, and reports whether the context has panicked.
func panicOnce(t *testing.T, at string, place schedtest.Scheduler, open func() victim, w way, with panickyOf, what string, again bool) (reached bool) {
	on, closed := place.Open()
	defer closed()
	v := open()
	inner, cancel := context.WithCancel(bg)
	defer cancel()
	ctx, panics := with(inner)
	if what == "done before" {
		cancel()
	}
	var ended atomic.Int64
	var gate promise.Promise[int]
	_ = on.Go(func() {
		defer ended.Add(1)
		defer func() {
			if r := recover(); r != nil && r != schedtest.PanickyValue {
				t.Errorf("%s: panic %v", at, r)
			}
		}()
		if again { // so that the task waits with this context for the second time
			_, _ = gate.Await(ctx)
		}
		_ = w.run(v, ctx)
	})
	synctest.Wait()
	_ = gate.Fill(1)
	synctest.Wait()
	if what == "cancelled before the others" {
		cancel()
		synctest.Wait()
	}
	patience, stop := context.WithTimeout(bg, time.Hour)
	defer stop()
	for range 2 {
		go func() {
			defer ended.Add(1)
			other := v.do
			if v.other != nil {
				other = v.other
			}
			if err := other(patience); err != nil {
				t.Errorf("%s: another: %v", at, err)
			}
		}()
		synctest.Wait()
	}
	if v.other != nil && what == "cancelled" {
		cancel()
		synctest.Wait()
		if ended.Load() < 3 {
			t.Errorf("%s: the gate stays locked", at)
		}
	}
	if event := events[what]; event != nil {
		event(cancel, v.release)
	}
	for range 4 {
		synctest.Wait()
		v.release()
	}
	synctest.Wait()
	if ended.Load() < 3 {
		t.Errorf("%s: %d of 3 have ended", at, ended.Load())
		cancel()
		stop()
		synctest.Wait()
		return true
	}
	if !v.whole() {
		t.Errorf("%s: something is lost, or a waiter is left", at)
	}
	return panics.Reached()
}

package explore_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/respool"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/braidgo/braid/suspendtest/internal/explore"
	"github.com/braidgo/braid/watch"
)

// letters starts a task for each letter. The task writes its letter n times, with a switch after each.
func letters(names string, n int, between func()) (program func(w *explore.World), orders map[string]bool) {
	orders = map[string]bool{}
	return func(w *explore.World) {
		order := ""
		for _, name := range strings.Split(names, "") {
			w.Go(name, func(context.Context) {
				for range n {
					order += name
					between()
				}
			})
		}
		w.Check(func() error { orders[order] = true; return nil })
	}, orders
}

// The number of runs is known: it is the number of orders of tasks with k steps each. It differs if a Yield is not a choice. The
// result must also name each bound that applies.
func TestCounts(t *testing.T) {
	var m mutex.Mutex
	lock := func() { m.Lock(); m.Unlock() }
	var c = chanx.New[int](1)
	sleep := func() { _ = suspend.Sleep(bg, 1) }
	try := func() { _, _ = c.TrySend(1); _, _, _ = c.TryRecv() }
	var g suspend.Guard
	held := 0
	twice := func() {
		g.Lock()
		held++
		g.Unlock()
		g.Relock()
		held++
		g.Unlock()
	}
	in := actor.Open[int](bg, actor.Options[int]{})
	send := func() { _ = in.Ref().Send(1) }
	for name, p := range map[string]struct {
		names               string
		n                   int
		between             func()
		yields, preemptions int
		runs, orders        int
		cut                 explore.Cut
	}{
		"two tasks, one yield":                      {"ab", 1, suspend.Yield, 1, -1, 6, 2, explore.Cut{}},      // 4!/(2!2!)
		"three tasks, one yield":                    {"abc", 1, suspend.Yield, 1, -1, 90, 6, explore.Cut{}},    // 6!/(2!2!2!)
		"three tasks, two yields":                   {"abc", 2, suspend.Yield, 2, -1, 1680, 90, explore.Cut{}}, // 9!/(3!3!3!)
		"three tasks, two yields, bounded":          {"abc", 2, suspend.Yield, 1, -1, 690, 90, explore.Cut{Yields: true}},
		"two tasks, two locks":                      {"ab", 2, lock, 1, -1, 20, 6, explore.Cut{}}, // a lock is one point: 6!/(3!3!)
		"two tasks, two locks, no preemption":       {"ab", 2, lock, 1, 0, 2, 2, explore.Cut{Preemptions: true}},
		"two tasks, two locks, one preemption":      {"ab", 2, lock, 1, 1, 6, 4, explore.Cut{Preemptions: true}}, // 2 + 2·2, of which 2 equal the runs without a preemption
		"three tasks, two sleeps":                   {"abc", 2, sleep, 2, -1, 1680, 90, explore.Cut{}},           // 9!/(3!3!3!), as for Yields
		"two tasks, two operations that never wait": {"ab", 1, try, 1, -1, 20, 2, explore.Cut{}},                 // each operation is a point
		"two tasks, a Guard locked again":           {"ab", 1, twice, 1, -1, 6, 2, explore.Cut{}},                // one point
		"two tasks, a Send to an actor":             {"ab", 1, send, 1, -1, 6, 2, explore.Cut{}},
	} {
		t.Run(name, func(t *testing.T) {
			program, orders := letters(p.names, p.n, p.between)
			r := explore.Run(explore.Config{Points: true, Asleep: true, Yields: p.yields, Preemptions: p.preemptions, Cancellations: explore.Unlimited}, program)
			if r.Failure != nil || !r.Exhausted || r.Executions != p.runs || len(orders) != p.orders || r.Cut != p.cut {
				t.Errorf("%d runs, %d orders, cut %+v, %v", r.Executions, len(orders), r.Cut, r.Failure)
			}
		})
	}
}

// A task loads x, performs an operation that need not wait, and stores x. It loses an update if another task runs at that
// operation, whatever the operation is.
func TestAnOperationThatNeedNotWaitIsAPoint(t *testing.T) {
	of := func(f func()) func() func() { return func() func() { return f } }
	filled := promise.New[int]()
	_ = filled.Fill(1)
	one := func(context.Context) (int, error) { return 1, nil }
	cache := func() *keyed.Cache[int, int] {
		return keyed.NewCache(func(ctx context.Context, _ int) (int, error) { return one(ctx) }, keyed.CacheOptions{TTL: time.Hour})
	}
	inScope := func(f func(s *scope.Scope)) func() func() {
		return func() func() { s := scope.Open(bg, scope.FirstError); return func() { f(s.Scope) } }
	}
	for name, each := range map[string]func() (op func()){
		"Mutex.Lock":           func() func() { var m mutex.Mutex; return func() { m.Lock() } },
		"Mutex.TryLock":        func() func() { var m mutex.Mutex; return func() { m.TryLock() } },
		"RWMutex.TryRLock":     func() func() { var m mutex.RWMutex; return func() { m.TryRLock() } },
		"Semaphore.Acquire":    func() func() { s := semaphore.New(1); return func() { _ = s.Acquire(bg, 1) } },
		"Semaphore.TryAcquire": func() func() { s := semaphore.New(1); return func() { s.TryAcquire(1) } },
		"Chan.Send":            func() func() { c := chanx.New[int](1); return func() { _ = c.Send(bg, 1) } },
		"Chan.TryRecv":         func() func() { c := chanx.New[int](1); return func() { _, _, _ = c.TryRecv() } },
		"MVar.Read":            func() func() { m := mvar.NewFull(1); return func() { _, _ = m.Read(bg) } },
		"Promise.Fill":         func() func() { p := promise.New[int](); return func() { _ = p.Fill(1) } },
		"Promise.Await":        of(func() { _, _ = filled.Await(bg) }),
		"Promise.Try":          of(func() { _, _, _ = filled.Try() }),
		"Latch.Wait":           func() func() { var l latch.Latch; return func() { _ = l.Wait(bg) } },
		"Latch.TryWait":        func() func() { var l latch.Latch; return func() { l.TryWait() } },
		"Latch.CountDown":      func() func() { return latch.New(2).CountDown },
		"Cond.Signal":          func() func() { return cond.New(new(mutex.Mutex)).Signal },
		"Cond.Broadcast":       func() func() { return cond.New(new(mutex.Mutex)).Broadcast },
		"Value.Load":           func() func() { v := watch.New(1); return func() { v.Load() } },
		"Value.Store":          func() func() { v := watch.New(1); return func() { _ = v.Store(2) } },
		"Value.Modify":         func() func() { v := watch.New(1); return func() { _, _ = v.Modify(func(n int) int { return n + 1 }) } },
		"Value.Close":          func() func() { v := watch.New(1); return func() { _ = v.Close() } },
		"Topic.Subscribe":      func() func() { c := broadcast.New[int](); return func() { c.Subscribe(1, broadcast.Wait) } },
		"Topic.Close":          func() func() { c := broadcast.New[int](); return func() { _ = c.Close() } },
		"Subscription.Close":   func() func() { s := broadcast.New[int]().Subscribe(1, broadcast.Wait); return func() { _ = s.Close() } },
		"Topic.Subscribers":    func() func() { c := broadcast.New[int](); return func() { c.Subscribers() } },
		"Limiter.SetLimit":     func() func() { l := rate.NewLimiter(1, 1); return func() { l.SetLimit(2) } },
		"Semaphore.Resize":     func() func() { s := semaphore.New(1); return func() { s.Resize(2) } },
		"Semaphore.Close":      func() func() { s := semaphore.New(1); return func() { _ = s.Close() } },
		"Chan.TrySend":         func() func() { c := chanx.New[int](1); return func() { _, _ = c.TrySend(1) } },
		"Chan.Close":           func() func() { c := chanx.New[int](1); return func() { _ = c.Close() } },
		"Chan.Len":             func() func() { c := chanx.New[int](1); return func() { c.Len() } },
		"MVar.TryPut":          func() func() { m := mvar.New[int](); return func() { m.TryPut(1) } },
		"MVar.TryTake":         func() func() { m := mvar.New[int](); return func() { m.TryTake() } },
		"MVar.TryRead":         func() func() { m := mvar.New[int](); return func() { m.TryRead() } },
		"Promise.Fail":         func() func() { p := promise.New[int](); return func() { p.Fail(errors.New("fails")) } },
		"Pool.Acquire": func() func() {
			p := resources()
			l, _ := p.Acquire(bg)
			l.Release()
			return func() { _, _ = p.Acquire(bg) }
		},
		"Pool.Stats":          func() func() { p := resources(); return func() { p.Stats() } },
		"Pool.Reset":          func() func() { p := resources(); return p.Reset },
		"Pool.TryAcquire":     func() func() { p := resources(); return func() { p.TryAcquire() } },
		"Pool.AcquireAllIdle": func() func() { p := resources(); return func() { p.AcquireAllIdle() } },
		"Limiter.SetBurst":    func() func() { l := rate.NewLimiter(1, 1); return func() { l.SetBurst(2) } },
		"Limiter.Tokens":      func() func() { l := rate.NewLimiter(1, 1); return func() { l.Tokens() } },
		"Cache.Stats":         func() func() { c := cache(); return func() { c.Stats() } },
		"Pool.Close":          func() func() { p := resources(); return func() { _ = p.Close() } },
		"Pool.Expire":         func() func() { p := resources(); return p.Expire },
		"cancel.New, stop":    func() func() { _, stop := cancel.New(bg); return func() { stop(nil) } },
		"Topic.Publish":       func() func() { c := broadcast.New[int](); return func() { _ = c.Publish(bg, 1) } },
		"Limiter.Allow":       func() func() { l := rate.NewLimiter(1, 1); return func() { l.Allow(1) } },
		"Limiter.Wait":        func() func() { l := rate.NewLimiter(1, 1); return func() { _ = l.Wait(bg) } },
		"Lazy.Force":          func() func() { l := lazy.New(one, lazy.Restart); return func() { _, _ = l.Force(bg) } },
		"Lazy.Value":          func() func() { l := lazy.New(one, lazy.Restart); return func() { _, _, _ = l.Value() } },
		"Cache.Forget":        func() func() { c := cache(); return func() { c.Forget(1) } },
		"Atomically":          of(func() { _ = stm.Atomically(bg, func(*stm.Tx) error { return nil }) }),
		"stm.Try":             of(func() { _, _ = stm.Try(func(*stm.Tx) error { return nil }) }),
		"Var.Load":            func() func() { v := stm.NewVar(1); return func() { v.Load() } },
		"Select":              of(func() { _, _ = suspend.SelectOrdered(bg, suspend.CaseOf(filled.AwaitOp())) }),
		"TrySelect":           of(func() { _, _ = suspend.TrySelect(bg, suspend.CaseOf(filled.AwaitOp())) }),
		"Guard.Lock":          func() func() { var g suspend.Guard; return g.Lock },
		"Send":                func() func() { in := actor.Open[int](bg, actor.Options[int]{}); return func() { _ = in.Ref().Send(1) } },
		"Inbox.Len":           func() func() { in := actor.Open[int](bg, actor.Options[int]{}); return func() { in.Len() } },
		"Scope.Go":            inScope(func(s *scope.Scope) { s.Go(suspend.Here(), func(context.Context) error { return nil }) }),
		"Hold of a Scope":     inScope(func(s *scope.Scope) { release, _ := s.On(nil).(sched.Holder).Hold(); release() }),
		"Scope.Cancel":        inScope(func(s *scope.Scope) { s.Cancel(nil) }),
		"idle.Group.Go":       func() func() { g := idle.New(suspend.Goroutines, nil); return func() { _ = g.Go(func() {}) } },
		"keyed.Mutex.Lock":    func() func() { var m keyed.Mutex[int]; return func() { m.Lock(1) } },
		"keyed.Mutex.TryLock": func() func() { var m keyed.Mutex[int]; return func() { m.TryLock(1) } },
		"keyed.Mutex.Len":     func() func() { var m keyed.Mutex[int]; return func() { m.Len() } },
	} {
		program := func(w *explore.World) {
			x := 0
			for _, name := range []string{"a", "b"} {
				op := each() // creates an operation
				w.Go(name, func(context.Context) {
					v := x
					op()
					x = v + 1
				})
			}
			w.Check(func() error {
				if x != 2 {
					return errors.New("lost")
				}
				return nil
			})
		}
		c := explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Executions: 1000}
		x := explore.Run(c, program)
		if x.Failure == nil || x.Failure.Reason != "check: lost" || !strings.Contains(strings.Join(x.Failure.Trace, "\n"), "lets others run") {
			t.Errorf("%s: %v, %v", name, x, x.Failure)
			continue
		}
		if !strings.HasPrefix(x.Failure.Replay, "1.") {
			t.Errorf("%s: more than one preemption: %s", name, x.Failure.Replay)
		}
		if c.Points = false; explore.Run(c, program).Failure != nil {
			t.Errorf("%s: found without points", name)
		}
	}
}

func resources() *respool.Pool[int] {
	return respool.New(respool.Options[int]{Max: 1, Open: func(context.Context) (int, error) { return 1, nil }})
}

// Each of these functions calls read for one item, and write for the next one, which is already there. Another task that adds one
// in between loses its update.
func TestOthersComeBetween(t *testing.T) {
	for name, batch := range map[string]func(ctx context.Context, on suspend.Spawner, read, write func()){
		"two tasks of a stage": func(_ context.Context, on suspend.Spawner, read, write func()) {
			var s *stage.Stage[int, int]
			s = stage.New("s", func(ctx context.Context, n int) (int, error) {
				if n == 2 {
					write()
					return n, nil
				}
				_ = s.Submit(ctx, 2)
				read()
				return n, nil
			}, stage.Options{Pool: stage.NewPool("p", 1, on), Width: 1})
			_ = s.Submit(bg, 1)
		},
		"two values of a channel": func(ctx context.Context, _ suspend.Spawner, read, write func()) {
			c := chanx.New[int](2)
			_, _, _ = c.Send(ctx, 0), c.Send(ctx, 1), c.Close()
			for i := range c.All(ctx) {
				[]func(){read, write}[i]()
			}
		},
		"two values of a topic": func(ctx context.Context, _ suspend.Spawner, read, write func()) {
			c := broadcast.New[int]()
			s := c.Subscribe(2, broadcast.Wait)
			_, _, _ = c.Publish(ctx, 0), c.Publish(ctx, 1), c.Close()
			for i := range s.All(ctx) {
				[]func(){read, write}[i]()
			}
		},
		"two callbacks": func(_ context.Context, on suspend.Spawner, read, write func()) {
			_, _ = on.(suspend.Executor).Execute(read), on.(suspend.Executor).Execute(write)
		},
		"two continuations of one promise": func(ctx context.Context, on suspend.Spawner, read, write func()) {
			p := promise.New[int]()
			for _, f := range []func(){read, write} {
				suspend.Then(ctx, p.AwaitOp(), on.(suspend.Executor), func(int, error) { f() })
			}
			_ = p.Fill(1)
		},
		"two results of a stream": func(ctx context.Context, on suspend.Spawner, read, write func()) {
			for i := range scope.Stream(ctx, on, 2, scope.Lift(slices.Values([]int{0, 1})), func(_ context.Context, i int) (int, error) { return i, nil }) {
				[]func(){read, write}[i]()
			}
		},
	} {
		x := explore.Run(explore.Config{Points: true, Asleep: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Never, Executions: 10_000}, func(w *explore.World) {
			x, v, looked, wrote := 0, 0, false, false
			w.Go("batch", func(context.Context) {
				batch(bg, suspend.Here(), func() { v, looked = x, true }, func() {
					if !looked { // callbacks run in any order
						v = x
					}
					x, wrote = v+1, true
				})
			})
			w.Go("adds", func(context.Context) { x++ })
			w.Check(func() error {
				switch {
				case !wrote:
					return errors.New("not called")
				case x != 2:
					return errors.New("lost")
				}
				return nil
			})
		})
		if x.Failure == nil || x.Failure.Reason != "check: lost" {
			t.Errorf("%s: %v, %v", name, x, x.Failure)
		}
	}
}

// A result names the bounds that have left out runs.
func TestResultsSayWhatIsLeftOut(t *testing.T) {
	c := explore.Config{Points: true, Yields: 1, Preemptions: explore.Unlimited, Cancellations: explore.Unlimited}
	var m mutex.Mutex
	locks := func(n int) func(w *explore.World) {
		program, _ := letters("abc", n, func() { m.Lock(); m.Unlock() })
		return program
	}
	yields, _ := letters("abc", 2, suspend.Yield)
	for _, p := range []struct {
		most, executions int
		program          func(w *explore.World)
		want             string
	}{
		{explore.Unlimited, 1000, locks(1), " runs, all of them"},
		{explore.Unlimited, 1000, locks(4), " runs, all but those with more preemptions than 2"},
		{1, 0, locks(4), " runs, all but those with more preemptions than 1"},
		{1, 5, locks(4), "5 runs, and there are more"},
		{explore.Unlimited, 1000, yields, " runs, all but those with more yields of a task while another could run"},
	} {
		c.Preemptions, c.Executions = p.most, p.executions
		if x := explore.Run(c, p.program).String(); !strings.HasSuffix(x, p.want) {
			t.Errorf("%s, want %s", x, p.want)
		}
	}
}

//go:build explore

package explore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// A program uses one primitive: it has tasks with their operations, and a check.
type program struct {
	name    string
	size    string // tasks × operations
	program func(w *explore.World)
}

// programs lists the programs that are searched without a bound on preemptions.
var programs = []program{
	{"promise", "3 × 1", promiseProgram},
	{"promise, filled twice", "3 × 2", func(w *explore.World) {
		h := linearizable(w, promiseModel)
		var p promise.Promise[int]
		for i, name := range []string{"fill", "fail"} {
			w.Go(name, func(context.Context) {
				for range 2 {
					_, _ = h.do(i, "fill", i+1, func() (int, error) {
						if p.Fill(i + 1) {
							return 1, nil
						}
						return 0, nil
					})
				}
			})
		}
		w.Go("await", func(ctx context.Context) {
			_, _ = h.do(2, "await", 0, func() (int, error) { return p.Await(ctx) })
			_, _ = h.do(2, "try", 0, func() (int, error) {
				v, ok, _ := p.Try()
				if !ok {
					v = -1
				}
				return v, nil
			})
		})
		w.OnIdle(lost)
	}},
	{"promise, never filled", "2 × 2", func(w *explore.World) {
		var p promise.Promise[int]
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(ctx context.Context) {
				for range 2 {
					if _, err := p.Await(ctx); err == nil {
						panic("filled")
					}
				}
			})
		}
	}},
	{"promise, All", "3 × 1", combinationProgram(promise.All[int], func(vs []int) bool { return len(vs) == 2 && vs[0] == 1 && vs[1] == 2 }, nil)},
	{"promise, All, failing", "3 × 1", combinationProgram(promise.All[int], func([]int) bool { return false }, errOops)},
	{"promise, Any", "3 × 1", combinationProgram(promise.Any[int], func(v int) bool { return v == 1 }, errOops)},
	{"promise, Race", "3 × 1", combinationProgram(promise.Race[int], func(v int) bool { return v == 1 }, errOops)},
	{"mvar", "3 × 1", mvarProgram(func() place { return mvar.New[int]() })},
	{"mvar, histories", "2 × 2", historyProgram([][]string{{"put", "take"}, {"take", "put"}})},
	{"mvar, read and swap", "3 × 1", historyProgram([][]string{{"put"}, {"read"}, {"swap"}})},
	{"mvar, modify", "3 × 1", historyProgram([][]string{{"put"}, {"modify"}, {"take"}})},
	{"mutex", "2 × 2", mutexProgram(2, 2)},
	{"mutex, 3 tasks", "3 × 1", mutexProgram(3, 1)},
	{"mutex, barging", "3 × 1", func(w *explore.World) {
		var m mutex.Mutex
		h := linearizable(w, lockModel)
		var in inside
		for i, name := range []string{"lock", "lock2"} {
			w.Go(name, func(ctx context.Context) {
				if h.none(i, "lock", 0, m.LockContext, ctx) == nil {
					in.write()
					_ = h.none(i, "unlock", 0, func(context.Context) error { m.Unlock(); return nil }, nil)
				}
			})
		}
		w.Go("try", func(context.Context) {
			locked, _ := h.do(2, "try", 0, func() (int, error) {
				if m.TryLock() {
					return 1, nil
				}
				return 0, nil
			})
			if locked == 1 {
				in.write()
				_ = h.none(2, "unlock", 0, func(context.Context) error { m.Unlock(); return nil }, nil)
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}},
	{"mutex, handed over", "3 × 1", func(w *explore.World) {
		var m mutex.Mutex
		var in inside
		work := func(err error) {
			if err == nil {
				in.write()
				m.Unlock()
			}
		}
		w.Go("lock", func(ctx context.Context) { work(m.LockContext(ctx)) })
		w.Go("op", func(ctx context.Context) { _, err := suspend.Do(ctx, m.LockOp()); work(err) })
		w.Go("try", func(context.Context) {
			for range 2 {
				if m.TryLock() {
					work(nil)
				}
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}},
	{"rwmutex", "3 × 1", rwProgram(func(m *mutex.RWMutex) func() { return m.Unlock })},
	{"rwmutex, downgrade", "3 × 1", rwProgram(func(m *mutex.RWMutex) func() {
		return func() { m.Downgrade(); m.RUnlock() }
	})},
	{"rwmutex, a gate", "3 × 1", func(w *explore.World) {
		var m mutex.RWMutex
		var second promise.Promise[int]
		w.Go("reader", func(context.Context) {
			m.RLock()
			_, _ = second.Await(bg)
			m.RUnlock()
		})
		w.Go("writer", func(ctx context.Context) {
			if m.LockContext(ctx) == nil {
				m.Unlock()
			}
		})
		w.Go("reader2", func(context.Context) {
			m.RLock()
			_ = second.Fill(1)
			m.RUnlock()
		})
		w.Check(func() error { return free(m.TryLock()) })
	}},
	{"semaphore", "3 × 1", semaphoreProgram(func() counter { return semaphore.New(2) })},
	{"semaphore, histories", "2 × 2", semaphoreHistory},
	{"semaphore, gated", "3 × 1", gatedProgram(func() counter { return semaphore.New(2) })},
	{"semaphore, handed to two", "3 × 1", func(w *explore.World) {
		s := semaphore.New(2)
		_ = s.Acquire(bg, 2)
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(context.Context) { _ = s.Acquire(bg, 1) })
		}
		w.Go("release", func(context.Context) { s.Release(2) })
		w.Check(func() error { return free(!s.TryAcquire(1)) })
	}},
	{"semaphore, smaller", "3 × 1", func(w *explore.World) {
		s := semaphore.New(2)
		_ = s.Acquire(bg, 2)
		w.Go("acquire", func(ctx context.Context) {
			if s.Acquire(ctx, 2) == nil {
				s.Release(2)
			}
		})
		w.Go("release", func(context.Context) { s.Release(1); s.Release(1) })
		w.Go("resize", func(context.Context) { s.Resize(0); s.Resize(1) })
		w.OnIdle(lost)
		w.Check(func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) })
	}},
	{"semaphore, larger", "3 × 1", func(w *explore.World) {
		s := semaphore.New(1)
		_ = s.Acquire(bg, 1)
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if s.Acquire(ctx, 1) == nil {
					s.Release(1)
				}
			})
		}
		w.Go("resize", func(context.Context) { s.Resize(2) })
		w.OnIdle(lost)
		w.Check(func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) })
	}},
	{"semaphore, close", "3 × 1", func(w *explore.World) {
		s := semaphore.New(1)
		_ = s.Acquire(bg, 1)
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if s.Acquire(ctx, 1) == nil {
					s.Release(1)
				}
			})
		}
		w.Go("close", func(context.Context) { _ = s.Close() })
		w.OnIdle(lost)
		w.Check(func() error { s.Release(1); return free(!s.TryAcquire(1)) })
	}},
	{"semaphore, TryAcquire", "3 × 1", func(w *explore.World) {
		s := semaphore.New(1)
		var in inside
		_ = s.Acquire(bg, 1)
		w.Go("release", func(context.Context) { s.Release(1) })
		w.Go("acquire", func(ctx context.Context) {
			if s.Acquire(ctx, 1) == nil {
				in.write()
				s.Release(1)
			}
		})
		w.Go("try", func(context.Context) {
			if s.TryAcquire(1) {
				in.write()
				s.Release(1)
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return free(s.TryAcquire(1) && !s.TryAcquire(1)) })
	}},
	{"chanx, rendezvous", "3 × 1", chanProgram(0)},
	{"chanx, buffered", "3 × 1", chanProgram(1)},
	{"chanx, histories", "2 × 2", func(w *explore.World) {
		c := chanx.New[int](1)
		h := linearizable(w, chanModel(1))
		w.Go("send", func(ctx context.Context) {
			for i := range 2 {
				_ = h.none(0, "send", i+1, func(ctx context.Context) error { return c.Send(ctx, i+1) }, ctx)
			}
		})
		w.Go("recv", func(ctx context.Context) {
			for range 2 {
				_, _ = h.do(1, "recv", 0, func() (int, error) { return c.Recv(ctx) })
			}
		})
	}},
	{"chanx, close", "3 × 1", closeProgram(0)},
	{"chanx, close, buffered", "3 × 1", closeProgram(1)},
	{"select, two parties", "2 × 1", selectProgram(2)},
	{"select and channel", "3 × 1", func(w *explore.World) {
		x, y := chanx.New[int](0), chanx.New[int](0)
		sent, received := 0, 0
		w.Go("select", func(ctx context.Context) {
			cx, cy := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp())
			if won, _ := suspend.SelectOrdered(ctx, cx, cy); won != nil {
				received++
			}
		})
		for i, c := range []*chanx.Chan[int]{x, y} {
			w.Go(fmt.Sprint("send", i), func(ctx context.Context) {
				if c.Send(ctx, 1) == nil {
					sent++
				}
			})
		}
		w.OnIdle(func(waiting []string) error { return onlyIf(len(waiting) == 1 || !slices.Contains(waiting, "select")) })
		w.Check(func() error { return same(sent, received) })
	}},
	{"select, a fast path", "2 × 1", func(w *explore.World) {
		var m mutex.Mutex
		s := semaphore.New(1)
		var in inside
		w.Go("select", func(ctx context.Context) {
			lock, acquire := suspend.CaseOf(m.LockOp()), suspend.CaseOf(s.AcquireOp(1))
			switch won, _ := suspend.SelectOrdered(ctx, lock, acquire); won {
			case lock:
				in.write()
				m.Unlock()
			case acquire:
				s.Release(1)
			}
		})
		w.Go("hold", func(ctx context.Context) {
			if !s.TryAcquire(1) {
				return
			}
			m.Lock()
			in.write()
			m.Unlock()
			s.Release(1)
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(free(m.TryLock()), free(s.TryAcquire(1))) })
	}},
	{"select, what is left", "2 × 1", func(w *explore.World) {
		var g suspend.Guard
		var q suspend.Queue[int, int]
		var p promise.Promise[int]
		w.Go("select", func(ctx context.Context) {
			never, await := suspend.CaseOf(suspend.OpOf[int](in[int, int]{&g, &q, 1, func() (int, bool) { return 0, false }})), suspend.CaseOf(p.AwaitOp())
			if won, err := suspend.SelectOrdered(ctx, never, await); err == nil && won != await {
				panic(won)
			}
		})
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
		w.OnIdle(lost)
		w.Check(func() error { return same(q.Len(), 0) })
	}},
	{"TrySelect", "2 × 1", func(w *explore.World) {
		x, y := chanx.New[int](0), chanx.New[int](1)
		sent, received := 0, 0
		w.Go("try", func(ctx context.Context) {
			cx, cy := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp())
			if won, _ := suspend.TrySelect(ctx, cx, cy); won != nil {
				received++
			}
		})
		w.Go("send", func(ctx context.Context) {
			cx, cy := suspend.CaseOf(x.SendOp(1)), suspend.CaseOf(y.SendOp(1))
			if won, _ := suspend.SelectOrdered(ctx, cx, cy); won != nil {
				sent++
			}
		})
		w.Check(func() error {
			_, ok, _ := y.TryRecv()
			if ok {
				received++
			}
			return same(sent, received)
		})
	}},
	{"Then", "2 × 1", func(w *explore.World) {
		m := mvar.New[int]()
		called, taken, put, late := 0, 0, 0, false
		w.Go("then", func(ctx context.Context) {
			on := suspend.Here().(suspend.Executor)
			done := suspend.Err(ctx) != nil
			suspend.Then(ctx, m.TakeOp(), on, func(v int, err error) {
				called++
				if err == nil {
					taken += v
					late = done
				}
			})
		})
		w.Go("put", func(ctx context.Context) {
			if m.Put(ctx, 1) == nil {
				put++
			}
		})
		w.Check(func() error {
			v, kept := m.TryTake()
			return errors.Join(same(put, taken+v), atMost(1, called), onlyIf(called == 1 || !kept), onlyIf(!late))
		})
	}},
	{"cond, signal", "3 × 1", condProgram(false, 1)},
	{"cond, two signals", "3 × 1–2", condProgram(false, 2)},
	{"cond, broadcast", "3 × 1", condProgram(true, 1)},
	{"latch", "3 × 1", func(w *explore.World) {
		l := latch.New(2)
		for _, name := range []string{"down", "down2"} {
			w.Go(name, func(context.Context) { l.CountDown() })
		}
		w.Go("wait", func(ctx context.Context) {
			if l.Wait(ctx) == nil && !l.TryWait() {
				panic("not open")
			}
		})
		w.OnIdle(lost)
	}},
	{"barrier", "2 × 1", barrierProgram(2, 1)},
	{"barrier, 2 rounds", "2 × 2", barrierProgram(2, 2)},
	{"barrier, 3 tasks", "3 × 1", barrierProgram(3, 1)},
	{"lazy, Restart", "2 × 1", lazyProgram(2, lazy.Restart)},
	{"lazy, Record", "2 × 1", lazyProgram(2, lazy.Record)},
	{"lazy, Protect", "2 × 1", lazyProgram(2, lazy.Protect)},
	{"lazy, 3 tasks", "3 × 1", lazyProgram(3, lazy.Restart)},
	{"lazy, the turn", "3 × 1", func(w *explore.World) {
		var gate promise.Promise[int]
		running := 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			running++
			defer func() { running-- }()
			return gate.Await(ctx) // waits until it is cancelled
		}, lazy.Restart)
		for _, name := range []string{"first", "second", "third"} {
			w.Go(name, func(ctx context.Context) { _, _ = l.Force(ctx) })
		}
		w.OnIdle(func([]string) error { return onlyIf(running == 1) })
	}},
	{"Queue", "3 × 1", queueProgram},
	{"Suspend", "3 × 1", suspendProgram((*explore.World).Go)},
	{"Suspend, detached", "3 × 1", suspendProgram((*explore.World).GoDetached)},
	{"deadline", "2 × 1", func(w *explore.World) {
		m := mvar.New[int]()
		soon := w.Deadline()
		put, taken := 0, 0
		w.Go("take", func(ctx context.Context) {
			v, err := m.Take(soon)
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					panic(err)
				}
				if v, err = m.Take(ctx); err != nil && ctx.Err() == nil {
					panic(err)
				}
			}
			taken += v
		})
		w.Go("put", func(ctx context.Context) {
			if m.Put(ctx, 1) == nil {
				put++
			}
		})
		w.Check(func() error { v, _ := m.TryTake(); return same(put, taken+v) })
	}},
	{"Sleep", "2 × 1", func(w *explore.World) {
		var l latch.Latch
		_ = l.Wait(bg)
		w.Go("sleep", func(ctx context.Context) { _ = suspend.Sleep(ctx, 1); _ = suspend.Sleep(ctx, 1) })
		w.OnIdle(lost)
	}},
	{"Lazily", "2 × 1", func(w *explore.World) {
		m := mvar.New[int]()
		put, taken := 0, 0
		w.Go("take", func(ctx context.Context) {
			v, _ := m.Take(suspend.Lazily(ctx))
			taken += v
		})
		w.Go("put", func(context.Context) {
			_ = m.Put(bg, 1)
			put++
		})
		w.Check(func() error { v, _ := m.TryTake(); return same(put, taken+v) })
	}},
	{"inbox", "3 × 1", inboxProgram(func() inbox { return new(fifo.Inbox) })},
	{"inbox, 2 items each", "3 × 2", inboxesProgram},
	{"deque, the last", "3 × 2", dequeProgram(2, 1, 2)},
	{"deque, growing", "3 × 3", dequeProgram(2, 3, 2)},
}

// boundedPrograms lists the programs that are searched with a bound on preemptions: their contexts change something that the search does
// not see, or they are too large.
var boundedPrograms = []program{
	{"mutex, 3 × 2", "3 × 2", mutexProgram(3, 2)},
	{"select, three parties", "3 × 1", selectProgram(3)},
	{"cancel", "3 × 1", func(w *explore.World) {
		var p promise.Promise[int]
		ctx, stop := cancel.New(bg)
		var errs [2]error
		for i, name := range []string{"await", "await2"} {
			w.Go(name, func(context.Context) { _, errs[i] = p.Await(ctx) })
		}
		w.Go("cancel", func(context.Context) { stop(errOops) })
		w.Check(func() error {
			for _, err := range errs {
				if !errors.Is(err, errOops) || !errors.Is(err, context.Canceled) {
					return err
				}
			}
			return nil
		})
	}},
	{"cancel, AfterFunc", "3 × 1", func(w *explore.World) {
		ctx, stop := cancel.New(bg)
		var calls, stopped [2]int
		for i := range calls {
			w.Go(fmt.Sprint("after", i), func(context.Context) {
				undo := ctx.(interface {
					AfterFunc(func()) (stop func() bool)
				}).AfterFunc(func() { calls[i]++ })
				if i == 1 && undo() {
					stopped[i]++
				}
			})
		}
		w.Go("cancel", func(context.Context) { stop(nil) })
		w.Check(func() error { return errors.Join(same(1, calls[0]+stopped[0]), same(1, calls[1]+stopped[1])) })
	}},
	// Package context may ask a context of package cancel for the context inside. This context must have ended.
	{"cancel, asked", "3 × 1", func(w *explore.World) {
		ctx, stop := cancel.New(bg)
		var dones [2]<-chan struct{}
		var child context.Context
		var stopChild context.CancelFunc
		w.Go("ask", func(context.Context) {
			before := ctx.Err()
			dones[0] = ctx.Done()
			if before != nil && !closed(dones[0]) || closed(dones[0]) && (ctx.Err() == nil || context.Cause(ctx) == nil) {
				panic("done, and not done")
			}
			child, stopChild = context.WithCancel(ctx)
		})
		w.Go("cancel", func(context.Context) {
			stop(nil)
			if ctx.Err() == nil {
				panic("not done")
			}
			dones[1] = ctx.Done()
		})
		w.Go("cancel2", func(context.Context) { stop(errOops) })
		w.Check(func() error {
			defer stopChild()
			err, cause := suspend.Err(ctx), context.Cause(ctx)
			if dones[0] != dones[1] || !closed(dones[0]) || context.Cause(child) != cause {
				return fmt.Errorf("not one and the same, or not done")
			}
			if cause == nil || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%v is the reason, and %v the cause", err, cause)
			}
			return nil
		})
	}},
	// A late cancellation of one wait must not cancel the next wait.
	{"cancel, the next context", "3 × 2", func(w *explore.World) {
		var m mvar.MVar[int]
		first, stop := cancel.New(bg)
		second, _ := cancel.New(bg)
		var err error
		taken := 0
		w.Go("take", func(context.Context) {
			v, _ := m.Take(first)
			taken += v
			v, err = m.Take(second)
			taken += v
		})
		w.Go("put", func(context.Context) {
			for range 2 {
				_ = m.Put(bg, 1)
			}
		})
		w.Go("cancel", func(context.Context) { stop(nil) })
		w.Check(func() error {
			left, _ := m.TryTake()
			return errors.Join(err, same(2, taken+left))
		})
	}},
	{"scope", "2 × 1", func(w *explore.World) {
		ended, begun, failed, fails := 0, 0, false, false
		w.Go("scope", func(ctx context.Context) {
			on := suspend.Here()
			err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
				for i := range 2 {
					s.Go(on, func(ctx context.Context) error {
						begun++
						defer func() { ended++ }()
						if i == 1 {
							fails = true
							return errOops
						}
						_, err := new(promise.Promise[int]).Await(ctx)
						return err
					})
				}
				return nil
			})
			failed = err != nil
			if ended != begun {
				panic("a child has outlived the scope")
			}
		})
		w.Check(func() error { return onlyIf(failed || !fails && begun == 2) })
	}},
	{"scope, cancelled", "2 × 1", func(w *explore.World) {
		ended := 0
		w.Go("scope", func(ctx context.Context) {
			on := suspend.Here()
			err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
				s.Go(on, func(ctx context.Context) error {
					s.Cancel(nil)
					ended++
					return nil
				})
				_, err := new(promise.Promise[int]).Await(ctx)
				return err
			})
			if err != nil && !errors.Is(err, context.Canceled) || err == nil && ended != 1 {
				panic(err)
			}
		})
		w.OnIdle(lost)
	}},
	// A task outside the scope calls Go. Its child runs before the end of the scope, or Go panics, or Run returns the reason why
	// the child has not run.
	{"scope, a Go beside its end", "2 × 1", func(w *explore.World) {
		var s *scope.Scope
		var open promise.Promise[int]
		var err error
		ran, late := false, false
		w.Go("scope", func(ctx context.Context) {
			err = scope.Run(ctx, func(_ context.Context, it *scope.Scope) error {
				s = it
				_ = open.Fill(1)
				return nil
			})
			_ = open.Fill(0)
		})
		w.Go("stranger", func(context.Context) {
			if v, _ := open.Await(bg); v == 1 {
				late = recovered(func() { s.Go(suspend.Here(), func(context.Context) error { ran = true; return nil }) }) != nil
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return onlyIf(ran || late || err != nil) })
	}},
	{"Limit, withdrawn", "3 × 1", func(w *explore.World) {
		ran, withdrawn, last := 0, false, false
		w.Go("scope", func(ctx context.Context) {
			on := suspend.Here()
			one := scope.Limit(1, on)
			_ = one.Go(func() {})
			err := scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
				s.Go(one, func(context.Context) error { ran++; return nil })
				return nil
			})
			withdrawn = ran == 0
			if withdrawn != (err != nil) {
				panic(err)
			}
			_ = one.Go(func() { last = true })
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(onlyIf(last), atMost(1, ran), onlyIf(!withdrawn || ran == 0)) })
	}},
	{"Limit, withdrawn from the one below", "3 × 1", func(w *explore.World) {
		ran, second, last := 0, 0, 0
		w.Go("scope", func(ctx context.Context) {
			inner := scope.Limit(1, suspend.Here())
			outer := scope.Limit(1, inner)
			_ = inner.Go(func() {})
			_ = scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
				s.Go(outer, func(context.Context) error { ran++; return nil })
				_ = outer.Go(func() { second++ })
				return nil
			})
			_ = outer.Go(func() { last++ })
		})
		w.OnIdle(lost)
		w.Check(func() error { return errors.Join(atMost(1, ran), same(last, 1), atMost(1, second)) })
	}},
	{"First", "2 × 1", func(w *explore.World) {
		w.Go("first", func(ctx context.Context) {
			v, err := scope.First(ctx, suspend.Here(),
				func(context.Context) (int, error) { return 1, nil },
				func(ctx context.Context) (int, error) { return new(promise.Promise[int]).Await(ctx) })
			if err == nil && v != 1 {
				panic(v)
			}
		})
		w.OnIdle(lost)
	}},
}

var (
	errLost = errors.New("a wake-up is lost")
	errOops = errors.New("oops")
)

// lost is the OnIdle of programs in which every wait ends.
func lost([]string) error { return errLost }

// onlyIf is the OnIdle of other programs.
func onlyIf(ok bool) error {
	if !ok {
		return errLost
	}
	return nil
}

func same(x, y int) error {
	if x != y {
		return fmt.Errorf("%d and %d", x, y)
	}
	return nil
}

func atMost(most, n int) error {
	if n > most {
		return fmt.Errorf("%d times", n)
	}
	return nil
}

func free(ok bool) error {
	if !ok {
		return errors.New("it is not free at the end")
	}
	return nil
}

// inside counts the holders of a lock: a writer, or any number of readers.
type inside struct {
	writer  atomicx.Bool
	readers [2]atomicx.Bool
}

func (in *inside) write() {
	if in.writer.Swap(true) || in.readers[0].Load() || in.readers[1].Load() {
		panic("not exclusive")
	}
	in.writer.Store(false)
}

func (in *inside) read(i int) {
	in.readers[i].Store(true)
	if in.writer.Load() {
		panic("not exclusive")
	}
	in.readers[i].Store(false)
}

func promiseProgram(w *explore.World) {
	p := promise.New[int]()
	for _, name := range []string{"await", "await2"} {
		w.Go(name, func(ctx context.Context) {
			if v, err := p.Await(ctx); err == nil && v != 1 {
				panic(v)
			}
		})
	}
	w.Go("fill", func(context.Context) { _ = p.Fill(1) })
	w.OnIdle(lost)
}

// combinationProgram fills x with 1, and y with 2 unless y fails.
func combinationProgram[U any](of func(...promise.Future[int]) suspend.Op[U], right func(U) bool, fails error) func(w *explore.World) {
	return func(w *explore.World) {
		var x, y promise.Promise[int]
		w.Go("x", func(context.Context) { _ = x.Fill(1) })
		w.Go("y", func(context.Context) { _ = y.Resolve(2, fails) })
		w.Go("await", func(ctx context.Context) {
			v, err := suspend.Do(ctx, of(&x, &y))
			if err == nil && !right(v) || err != nil && err != fails && !errors.Is(err, context.Canceled) {
				panic(fmt.Sprint(v, err))
			}
		})
		w.OnIdle(lost)
	}
}

type place interface {
	Put(ctx context.Context, v int) error
	Take(ctx context.Context) (int, error)
	TryTake() (int, bool)
}

func mvarProgram(open func() place) func(w *explore.World) {
	return func(w *explore.World) {
		m := open()
		put, taken := 0, 0
		w.Go("take", func(ctx context.Context) {
			if v, err := m.Take(ctx); err == nil {
				taken += v
			}
		})
		for i, name := range []string{"put", "put2"} {
			w.Go(name, func(ctx context.Context) {
				if m.Put(ctx, i+1) == nil {
					put += i + 1
				}
			})
		}
		w.OnIdle(func(waiting []string) error { // has room for one value
			return onlyIf(len(waiting) == 1 && (waiting[0] == "take" && put == 0 || waiting[0] != "take" && taken == 0))
		})
		w.Check(func() error {
			v, _ := m.TryTake()
			return same(put, taken+v)
		})
	}
}

// historyProgram has tasks that perform the given operations on one MVar.
func historyProgram(tasks [][]string) func(w *explore.World) {
	return func(w *explore.World) {
		var m mvar.MVar[int]
		h := linearizable(w, placeModel)
		n := 0
		for i, ops := range tasks {
			w.Go(fmt.Sprint(ops), func(ctx context.Context) {
				for _, name := range ops {
					n++
					v := 10*i + n
					_, _ = h.do(i, name, v, func() (got int, err error) {
						switch name {
						case "put":
							return 0, m.Put(ctx, v)
						case "take":
							return m.Take(ctx)
						case "read":
							return m.Read(ctx)
						case "swap":
							return m.Swap(ctx, v)
						default:
							return got, m.Modify(ctx, func(x int) (int, error) { got = x; return x + v, nil })
						}
					})
				}
			})
		}
	}
}

type lock interface {
	LockContext(ctx context.Context) error
	TryLock() bool
	Unlock()
}

func mutexProgram(tasks, ops int) func(w *explore.World) {
	return lockProgram(tasks, ops, func() lock { return new(mutex.Mutex) })
}

func lockProgram(tasks, ops int, open func() lock) func(w *explore.World) {
	return func(w *explore.World) {
		m := open()
		var in inside
		for i := range tasks {
			w.Go(fmt.Sprint("lock", i), func(ctx context.Context) {
				for range ops {
					if m.LockContext(ctx) == nil {
						in.write()
						m.Unlock()
					}
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}
}

func rwProgram(unlock func(m *mutex.RWMutex) func()) func(w *explore.World) {
	return func(w *explore.World) {
		var m mutex.RWMutex
		var in inside
		for i, name := range []string{"read", "read2"} {
			w.Go(name, func(ctx context.Context) {
				if m.RLockContext(ctx) == nil {
					in.read(i)
					m.RUnlock()
				}
			})
		}
		w.Go("write", func(ctx context.Context) {
			if m.LockContext(ctx) == nil {
				in.write()
				unlock(&m)()
			}
		})
		w.OnIdle(lost)
		w.Check(func() error { return free(m.TryLock()) })
	}
}

type counter interface {
	Acquire(ctx context.Context, n int64) error
	TryAcquire(n int64) bool
	Release(n int64)
}

func semaphoreProgram(open func() counter) func(w *explore.World) {
	return func(w *explore.World) {
		s := open()
		var held atomicx.Int32
		for i, n := range []int64{1, 2, 1} {
			w.Go(fmt.Sprint("acquire", i), func(ctx context.Context) {
				if s.Acquire(ctx, n) == nil {
					if held.Add(int32(n)) > 2 {
						panic("too many")
					}
					held.Add(int32(-n))
					s.Release(n)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return free(s.TryAcquire(2) && !s.TryAcquire(1)) })
	}
}

func semaphoreHistory(w *explore.World) {
	s := semaphore.New(2)
	h := linearizable(w, permitModel(2))
	for i, n := range []int{1, 2} {
		w.Go(fmt.Sprint("acquire", i), func(ctx context.Context) {
			if h.none(i, "acquire", n, func(ctx context.Context) error { return s.Acquire(ctx, int64(n)) }, ctx) == nil {
				_ = h.none(i, "release", n, func(context.Context) error { s.Release(int64(n)); return nil }, nil)
			}
		})
	}
	w.OnIdle(lost)
}

// A cancelled waiter passes free permits to those behind it.
func gatedProgram(open func() counter) func(w *explore.World) {
	return func(w *explore.World) {
		s := open()
		var both promise.Promise[int]
		w.Go("first", func(context.Context) {
			_ = s.Acquire(bg, 1)
			_, _ = both.Await(bg)
			s.Release(1)
		})
		w.Go("gate", func(ctx context.Context) {
			if s.Acquire(ctx, 2) == nil {
				s.Release(2)
			}
		})
		w.Go("second", func(context.Context) {
			_ = s.Acquire(bg, 1)
			_ = both.Fill(1)
			s.Release(1)
		})
		w.Check(func() error { return free(s.TryAcquire(2) && !s.TryAcquire(1)) })
	}
}

func chanProgram(capacity int) func(w *explore.World) {
	return func(w *explore.World) {
		c := chanx.New[int](capacity)
		sent, received := 0, 0
		for i, name := range []string{"send", "send2"} {
			w.Go(name, func(ctx context.Context) {
				if c.Send(ctx, i+1) == nil {
					sent += i + 1
				}
			})
		}
		w.Go("recv", func(ctx context.Context) {
			if v, err := c.Recv(ctx); err == nil {
				received += v
			}
		})
		w.OnIdle(func(waiting []string) error {
			if slices.Contains(waiting, "recv") {
				return onlyIf(len(waiting) == 1 && sent == 0)
			}
			return onlyIf(capacity == 0 || len(waiting) == 1 && received == 0)
		})
		w.Check(func() error {
			v, _, _ := c.TryRecv()
			return same(sent, received+v)
		})
	}
}

func closeProgram(capacity int) func(w *explore.World) {
	told := func(err error) error {
		if err == chanx.ErrClosed {
			panic("the error of the close is lost")
		}
		return err
	}
	return func(w *explore.World) {
		c := chanx.New[int](capacity)
		sent, received := 0, 0
		w.Go("send", func(ctx context.Context) {
			if told(c.Send(ctx, 1)) == nil {
				sent++
			}
		})
		w.Go("recv", func(ctx context.Context) {
			if _, err := c.Recv(ctx); told(err) == nil {
				received++
			}
		})
		w.Go("close", func(context.Context) { _ = c.CloseWith(errOops) })
		w.OnIdle(lost)
		w.Check(func() error {
			v, _, _ := c.TryRecv()
			return same(sent, received+v)
		})
	}
}

// Each task selects a send on one channel and a receive on the next.
func selectProgram(n int) func(w *explore.World) {
	return func(w *explore.World) {
		var chans []*chanx.Chan[int]
		for range n {
			chans = append(chans, chanx.New[int](0))
		}
		sent, received := 0, 0
		for i, out := range chans {
			w.Go(fmt.Sprint("party", i), func(ctx context.Context) {
				send, recv := suspend.CaseOf(out.SendOp(1)), suspend.CaseOf(chans[(i+1)%n].RecvOp())
				switch won, _ := suspend.SelectOrdered(ctx, send, recv); won {
				case send:
					sent++
				case recv:
					received++
				}
			})
		}
		w.OnIdle(func(waiting []string) error { return onlyIf(len(waiting) == 1) })
		w.Check(func() error { return same(sent, received) })
	}
}

func condProgram(broadcast bool, times int) func(w *explore.World) {
	return func(w *explore.World) {
		var m mutex.Mutex
		c := cond.New(&m)
		tokens, taken := 0, 0
		for _, name := range []string{"wait", "wait2"} {
			w.Go(name, func(ctx context.Context) {
				m.Lock()
				defer m.Unlock()
				for tokens == 0 {
					if c.Wait(ctx) != nil {
						return
					}
				}
				if !broadcast {
					tokens--
				}
				taken++
			})
		}
		w.Go("signal", func(context.Context) {
			for range times {
				m.Lock()
				tokens++
				m.Unlock()
				if broadcast {
					c.Broadcast()
				} else {
					c.Signal()
				}
			}
		})
		w.OnIdle(func([]string) error { return onlyIf(tokens == 0) })
		w.Check(func() error {
			if broadcast {
				return atMost(2, taken)
			}
			return same(times, tokens+taken)
		})
	}
}

func barrierProgram(parties, rounds int) func(w *explore.World) {
	return func(w *explore.World) {
		b := latch.NewBarrier(parties)
		passed, zeros := 0, 0
		for i := range parties {
			w.Go(fmt.Sprint("party", i), func(ctx context.Context) {
				for range rounds {
					if index, err := b.Wait(ctx); err == nil {
						passed++
						if index == 0 {
							zeros++
						}
					}
				}
			})
		}
		w.Check(func() error { return same(passed, parties*zeros) })
	}
}

func lazyProgram(tasks int, mode lazy.Mode) func(w *explore.World) {
	return func(w *explore.World) {
		ran, ok := 0, 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			ran++
			if err := suspend.Err(ctx); err != nil {
				return 0, err
			}
			ok++
			return 1, nil
		}, mode)
		for i := range tasks {
			w.Go(fmt.Sprint("force", i), func(ctx context.Context) {
				if v, err := l.Force(ctx); err == nil && v != 1 {
					panic(v)
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error {
			if mode == lazy.Restart {
				return atMost(1, ok)
			}
			return atMost(1, ran)
		})
	}
}

func queueProgram(w *explore.World) {
	var g suspend.Guard
	var q suspend.Queue[int, int]
	resumed, returned, gone := 0, 0, 0
	for i, name := range []string{"wait", "wait2"} {
		w.Go(name, func(ctx context.Context) {
			v, err := suspend.Wait[int](ctx, in[int, int]{&g, &q, i + 1, func() (int, bool) { return 0, false }})
			if err != nil {
				gone++
			}
			returned += v
		})
	}
	w.Go("resume", func(context.Context) {
		for range 2 {
			g.Lock()
			if p, ok := q.Resume(5, nil); ok {
				resumed += 5
				if p != 1 && p != 2 {
					panic(p)
				}
			}
			g.Unlock()
		}
	})
	w.Check(func() error { return errors.Join(same(resumed, returned), same(q.Len(), 0), atMost(2, gone)) })
}

func suspendProgram(start func(w *explore.World, name string, f func(ctx context.Context))) func(w *explore.World) {
	return func(w *explore.World) {
		var rs [2]suspend.Resumer[int]
		var published mvar.MVar[struct{}]
		delivered, returned := 0, 0
		start(w, "wait", func(ctx context.Context) {
			for i := range 2 { // the second wait must not see a late wake-up of the first
				v, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
					rs[i] = r
					if i == 0 {
						_ = published.TryPut(struct{}{})
						return 0, false
					}
					if !r.Resume(7, nil) {
						return 7, true // the wait was cancelled
					}
					return 0, false
				})
				switch {
				case err == nil && i == 0:
					returned = v
				case err == nil && v != 7:
					panic(v)
				}
			}
			_ = published.TryPut(struct{}{}) // if the first wait has not published it
		})
		for i, name := range []string{"resume", "resume2"} {
			w.Go(name, func(context.Context) {
				if _, err := published.Read(bg); err == nil && rs[0].Resume(i+1, nil) {
					delivered += i + 1
				}
			})
		}
		w.Check(func() error { return same(delivered, returned) })
	}
}

type inbox interface {
	Push(it *fifo.Item) bool
	Take() *fifo.Item
	Sleep() bool
}

func inboxProgram(open func() inbox) func(w *explore.World) {
	return func(w *explore.World) {
		in := open()
		var wake mvar.MVar[struct{}]
		var items [2]fifo.Item
		for i, name := range []string{"push", "push2"} {
			w.Go(name, func(context.Context) {
				if in.Push(&items[i]) {
					_ = wake.TryPut(struct{}{})
				}
			})
		}
		w.Go("sleep", func(context.Context) {
			for in.Take() == nil {
				if in.Sleep() {
					_, _ = wake.Take(bg)
				}
			}
		})
	}
}

// inboxesProgram has a scheduler that parks like fifo, and runs all items that are pushed.
func inboxesProgram(w *explore.World) {
	var in fifo.Inbox
	var self atomicx.Pointer[suspend.Task]
	const each = 2
	for _, name := range []string{"push", "push2"} {
		w.Go(name, func(context.Context) {
			for range each {
				if in.Push(new(fifo.Item)) {
					(*self.Load()).Unpark()
				}
			}
		})
	}
	w.Go("run", func(context.Context) {
		me := suspend.Self()
		self.Store(&me)
		for ran := 0; ran < 2*each; {
			if it := in.Take(); it != nil {
				ran += it.Len()
			} else if in.Sleep() {
				for in.Asleep() {
					me.Park()
				}
			}
		}
	})
}

// dequeProgram has an owner that pushes and pops, and thieves.
func dequeProgram(size, pushes, thieves int) func(w *explore.World) {
	return func(w *explore.World) {
		d := workstealing.NewDeque(size, ^uint64(0)) // begins near the overflow of the indices
		d.Make(pushes)
		var got [3]int
		w.Go("owner", func(context.Context) {
			for i := range pushes {
				d.Push(i)
			}
			for n := d.Pop(); n >= 0; n = d.Pop() {
				got[n]++
			}
		})
		for i := range thieves {
			w.Go(fmt.Sprint("thief", i), func(context.Context) {
				if n, _ := d.Steal(); n >= 0 {
					got[n]++
				}
			})
		}
		w.Check(func() error {
			for n, times := range got[:pushes] {
				if times != 1 {
					return fmt.Errorf("%d is there %d times", n, times)
				}
			}
			return nil
		})
	}
}

// Park may return for no reason, once for each task.
func TestSpuriousReturns(t *testing.T) {
	runs := deeper(500)
	for _, p := range programs {
		for _, c := range []explore.Config{with(reduced, 0), with(reduced, 1), with(fine(1), 1)} {
			c.Spurious, c.Executions = 1, runs
			r := explore.Run(c, p.program)
			if r.Failure != nil {
				t.Errorf("%s: %v", p.name, r.Failure)
			}
			if c.Reduced {
				t.Logf("%s, %d cancellations: %d runs, all: %v", p.name, c.Cancellations, r.Executions, r.Exhausted)
			}
		}
	}
}

func with(c explore.Config, cancellations int) explore.Config {
	c.Cancellations = cancellations
	return c
}

// deeper returns n times the environment variable BRAID_EXPLORE: with 1 the tests take a minute, with 1000 hours.
func deeper(n int) int {
	factor, err := strconv.Atoi(cmp.Or(os.Getenv("BRAID_EXPLORE"), "1"))
	if err != nil || factor < 1 {
		panic("BRAID_EXPLORE is not a positive number")
	}
	return n * factor
}

// TestPrimitives prints its bounds and its runs. It cancels all contexts, or as many of them as the number of allowed runs permits.
func TestPrimitives(t *testing.T) {
	runs := deeper(10_000)
	if testing.Short() {
		runs = 3_000
	}
	t.Logf("%-24s %-6s %-11s %-13s %9s %9s  %s", "primitive", "size", "preemptions", "cancellations", "runs", "a second", "")
	row := func(t *testing.T, p program, c explore.Config) explore.Result {
		c.Executions = runs
		start := time.Now()
		r := explore.Run(c, p.program)
		took := time.Since(start)
		if r.Failure != nil {
			t.Errorf("%s, run %d: %v", p.name, r.Executions, r.Failure)
			return r
		}
		end := "all"
		if !r.Exhausted {
			end = "and there are more"
		}
		t.Logf("%-24s %-6s %-11s %-13s %9d %9.0f  %s", p.name, p.size, bound(c.Preemptions), bound(c.Cancellations), r.Executions,
			float64(r.Executions)/took.Seconds(), end)
		return r
	}
	preempting := func(t *testing.T, p program) { row(t, p, with(fine(3), 1)) }
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for _, n := range []int{0, 1, 2, explore.Unlimited} {
				r := row(t, p, with(reduced, n))
				if r.Failure == nil && !r.Exhausted && (n == 0 || n == 1) { // if time is short, tries random choices, too
					preempting(t, p)
				}
				if !r.Exhausted || !r.Cut.Cancellations {
					break
				}
			}
		})
	}
	for _, p := range boundedPrograms {
		t.Run(p.name, func(t *testing.T) { preempting(t, p) })
	}
}

func bound(n int) string {
	if n < 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, primPrograms...) }

// These are further programs of primitives, in addition to those of programs_test.go.
var primPrograms = []program{
	{"promise, a continuation of All", "2 × 1", func(w *explore.World) {
		var x, y promise.Promise[int]
		called, got := 0, []int(nil)
		w.Go("then", func(ctx context.Context) {
			suspend.Then(ctx, promise.All(&x, &y), suspend.Here().(suspend.Executor), func(vs []int, _ error) {
				called++
				got = vs
			})
		})
		w.Go("fill", func(context.Context) { _ = x.Fill(1); _ = y.Fill(2) })
		w.Check(func() error { return errors.Join(same(called, 1), onlyIf(got == nil || got[0] == 1 && got[1] == 2)) })
	}},
	{"promise, two that follow", "3 × 1", func(w *explore.World) {
		var x promise.Promise[int]
		for _, name := range []string{"one", "other"} {
			w.Go(name, func(ctx context.Context) {
				if v, err := suspend.Do(ctx, promise.Race(&x)); err == nil && v != 1 {
					panic(v)
				}
			})
		}
		w.Go("fill", func(context.Context) { _ = x.Fill(1) })
		w.OnIdle(lost)
	}},
	// A change of v makes the Select look again.
	{"promise, All, looked at again", "2 × 1", func(w *explore.World) {
		var x, y promise.Promise[int]
		var v stm.Var[int]
		_ = x.Fill(1)
		w.Go("select", func(ctx context.Context) {
			all, never := suspend.CaseOf(promise.All(&x, &y)), suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) { return v.Get(tx), stm.Retry }))
			if won, _ := suspend.Select(ctx, all, never); won == all && all.Value()[1] != 2 {
				panic(all.Value())
			}
		})
		w.Go("fill", func(context.Context) { _ = stm.Atomically(bg, add(&v, 1)); _ = y.Fill(2) })
		w.OnIdle(lost)
	}},
	{"promise, All beside one of its futures", "3 × 1", func(w *explore.World) {
		var x, y promise.Promise[int]
		w.Go("x", func(context.Context) { _ = x.Fill(1) })
		w.Go("y", func(context.Context) { _ = y.Fill(2) })
		w.Go("select", func(ctx context.Context) {
			all, one := suspend.CaseOf(promise.All(&x, &y)), suspend.CaseOf(x.AwaitOp())
			switch won, _ := suspend.Select(ctx, all, one); {
			case won == all && (all.Value()[0] != 1 || all.Value()[1] != 2), won == one && one.Value() != 1:
				panic("values")
			}
		})
		w.OnIdle(lost)
	}},
	{"cond, the first that a broadcast wakes cancels the second", "3 × 1", func(w *explore.World) {
		var m mutex.Mutex
		c := cond.New(&m)
		cancelled, end := cancel.New(bg)
		waiting, served := 0, 0 // how often the second waits, and how many waiters the Broadcast has
		var first, second error
		w.Go("first", func(ctx context.Context) {
			m.Lock()
			first = c.Wait(ctx)
			m.Unlock()
			end(nil)
		})
		w.Go("second", func(context.Context) {
			m.Lock()
			waiting++
			second = c.Wait(cancelled)
			m.Unlock()
		})
		w.Go("broadcast", func(context.Context) {
			m.Lock()
			served = waiting
			m.Unlock()
			c.Broadcast() // the first may run before the Broadcast comes to the second
		})
		w.Check(func() error { return onlyIf(served == 0 || first != nil || second == nil) })
	}},
	// Each error belongs to one run, and all waiters of this run get it, unless their context has ended. A cancelled run does not
	// count for them.
	{"lazy, Retry", "3 × 1", func(w *explore.World) {
		runs, running, values := 0, 0, 0
		l := lazy.New(func(ctx context.Context) (int, error) {
			runs++
			n := runs
			if running++; running > 1 {
				panic("two run the function")
			}
			suspend.Yield()
			running--
			switch err := suspend.Err(ctx); {
			case err != nil:
				return 0, err
			case n == 1:
				return 0, errOops
			}
			values++
			return n, nil
		}, lazy.Retry)
		for i := range 3 {
			w.Go(fmt.Sprint("force", i), func(ctx context.Context) {
				if v, err := l.Force(ctx); err == nil && v < 2 || err != nil && err != errOops && suspend.Err(ctx) == nil {
					panic(fmt.Sprint(v, err))
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return atMost(1, values) })
	}},
	// The second run of a forces b, which may have waited for the first run. Then b does not wait any more, so there is no
	// cycle.
	{"lazy, Retry beside another", "2 × 1", func(w *explore.World) {
		var a, b *lazy.Lazy[int]
		var inA, inB error
		runs := 0
		a = lazy.New(func(context.Context) (int, error) {
			if runs++; runs == 1 {
				suspend.Yield()
				return 0, errOops
			}
			_, inA = b.Force(bg)
			return runs, nil
		}, lazy.Retry)
		b = lazy.New(func(context.Context) (int, error) {
			_, inB = a.Force(bg)
			return 1, nil
		}, lazy.Retry)
		w.Go("a", func(context.Context) {
			_, _ = a.Force(bg)
			_, _ = a.Force(bg)
		})
		w.Go("b", func(context.Context) { _, _ = b.Force(bg) })
		w.OnIdle(lost)
		w.Check(func() error { return onlyIf(inB != errOops || inA == nil) })
	}},
	{"lazy, a cycle", "2 × 1", cycleProgram(2)},
	{"lazy, a cycle of 3", "3 × 1", cycleProgram(3)},
	// After a failed run, another task runs the function, and closes a cycle, perhaps before the first task continues. If the
	// cycle is not found, all tasks wait for ever.
	{"lazy, a cycle with the turn", "3 × 1", func(w *explore.World) {
		var l, other *lazy.Lazy[int]
		impatient, end := cancel.New(bg)
		runs := 0
		l = lazy.New(func(context.Context) (int, error) {
			if runs++; runs == 1 {
				end(nil)
				return 0, errOops
			}
			return other.Force(bg)
		}, lazy.Restart)
		other = lazy.New(func(context.Context) (int, error) { return l.Force(bg) }, lazy.Record)
		w.Go("first", func(context.Context) { _, _ = l.Force(impatient) })
		w.Go("second", func(context.Context) { _, _ = l.Force(bg) })
		w.Go("other", func(context.Context) { _, _ = other.Force(bg) })
	}},
	{"lazy, two meet at a third", "2 × 1", func(w *explore.World) {
		end := lazy.New(func(context.Context) (int, error) { return 1, nil }, lazy.Record)
		for _, name := range []string{"x", "y"} {
			by := lazy.New(func(ctx context.Context) (int, error) {
				if _, err := end.Force(ctx); err != nil {
					return 0, err
				}
				return end.Force(ctx)
			}, lazy.Record)
			w.Go(name, func(ctx context.Context) {
				if v, err := by.Force(bg); v != 1 || err != nil {
					panic(err)
				}
			})
		}
	}},
	{"lazy, a part that gives up", "3 × 1", func(w *explore.World) {
		var x, y *lazy.Lazy[int]
		var running, gaveUp promise.Promise[int] // y runs; x has given up
		impatient, end := cancel.New(bg)
		inside := lazy.New(func(context.Context) (int, error) { // a part of x that runs when y looks
			_, _ = running.Await(bg)
			_, _ = y.Force(impatient)
			_ = gaveUp.Fill(1)
			return 1, nil
		}, lazy.Record)
		x = lazy.New(func(ctx context.Context) (int, error) { return inside.Force(ctx) }, lazy.Record)
		y = lazy.New(func(ctx context.Context) (int, error) {
			_ = running.Fill(1)
			_, _ = gaveUp.Await(bg)
			return x.Force(ctx)
		}, lazy.Record)
		for i, name := range []string{"x", "y"} {
			w.Go(name, func(context.Context) {
				if v, err := []*lazy.Lazy[int]{x, y}[i].Force(bg); v != 1 || err != nil {
					panic(err)
				}
			})
		}
		w.Go("cancel", func(context.Context) { end(nil) })
	}},
}

// cycleProgram forces n lazy values that force each other in a cycle, each in a task of its own. Exactly one Force is refused,
// and all tasks get its error.
func cycleProgram(n int) func(w *explore.World) {
	return func(w *explore.World) {
		values := make([]*lazy.Lazy[int], n)
		refused, failed := 0, 0
		for i := range values {
			values[i] = lazy.New(func(ctx context.Context) (int, error) {
				v, err := values[(i+1)%n].Force(ctx)
				if err == lazy.ErrRecursive {
					refused++
					return 0, errOops
				}
				return v, err
			}, lazy.Record)
		}
		for i := range values {
			w.Go(fmt.Sprint("force", i), func(context.Context) {
				if _, err := values[i].Force(bg); err == errOops {
					failed++
				}
			})
		}
		w.Check(func() error { return errors.Join(same(refused, 1), same(failed, n)) })
	}
}

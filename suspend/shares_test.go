package suspend_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// Each ready case has the same chance, whatever its position. With only a random starting point, the second of two neighbouring
// ready cases among ten would win in a tenth of the calls, and a busy queue would starve the queue listed after it.
func TestReadyCasesHaveEqualShares(t *testing.T) {
	for _, x := range []struct{ ready, of int }{{2, 3}, {2, 10}, {3, 50}} {
		var ops []suspend.Op[int]
		for i := range x.of {
			var p promise.Promise[int]
			if i < x.ready {
				_ = p.Fill(i)
			}
			ops = append(ops, p.AwaitOp())
		}
		for name, perform := range map[string]func() func() int{
			"Select": func() func() int {
				cases := make([]suspend.Selectable, len(ops))
				for i, op := range ops {
					cases[i] = suspend.CaseOf(op)
				}
				return func() int {
					won, err := suspend.Select(context.Background(), cases...)
					if err != nil {
						t.Error(err)
					}
					return won.(*suspend.Case[int]).Value()
				}
			},
			"Choose": func() func() int {
				op := suspend.Choose(ops...)
				return func() int {
					v, err := suspend.Do(context.Background(), op)
					if err != nil {
						t.Error(err)
					}
					return v
				}
			},
			"Then": func() func() int {
				op := suspend.Choose(ops...)
				return func() int {
					var p promise.Promise[int]
					suspend.Then(context.Background(), op, suspendOn(), func(v int, _ error) { _ = p.Fill(v) })
					v, _ := p.Await(context.Background())
					return v
				}
			},
		} {
			t.Run(fmt.Sprintf("%s/%d of %d", name, x.ready, x.of), func(t *testing.T) {
				t.Run("goroutine", func(t *testing.T) { checkShares(t, x.ready, perform()) })
				t.Run("fifo", func(t *testing.T) {
					schedtest.OnFIFO(t, func(*fifo.Scheduler) { checkShares(t, x.ready, perform()) })
				})
			})
		}
	}
}

// suspendOn returns the executor of the caller.
func suspendOn() suspend.Executor {
	if e, ok := suspend.Here().(suspend.Executor); ok {
		return e
	}
	return onGoroutine{}
}

type onGoroutine struct{}

func (onGoroutine) Execute(f func()) error { go f(); return nil }

// checkShares is a chi-square test of n equal shares. By chance it fails once in a billion times.
func checkShares(t *testing.T, n int, draw func() int) {
	t.Helper()
	const draws = 3000
	count := make([]int, n)
	for range draws {
		count[draw()]++
	}
	chi2, want := 0.0, float64(draws)/float64(n)
	for _, c := range count {
		chi2 += (float64(c) - want) * (float64(c) - want) / want
	}
	if limit := 42.0; chi2 > limit { // at most two degrees of freedom
		t.Errorf("shares %v: chi-square is %.0f, and not below %.0f", count, chi2, limit)
	}
}

// Two runs on a scheduler with the same seed make the same choices. Another seed leads to other choices.
func TestAScheduledSelectIsRepeatable(t *testing.T) {
	run := func(seed uint64) (chosen []int) {
		s := fifo.New(fifo.Options{Seed: seed})
		_ = s.Run(context.Background(), func(ctx context.Context) error {
			var ops []suspend.Op[int]
			for i := range 5 {
				var p promise.Promise[int]
				_ = p.Fill(i)
				ops = append(ops, p.AwaitOp())
			}
			for range 40 {
				v, _ := suspend.Do(ctx, suspend.Choose(ops...))
				chosen = append(chosen, v)
			}
			// A callback has no task, so the choice uses the random source of the executor.
			done := promise.New[struct{}]()
			_ = s.Execute(func() {
				suspend.Then(ctx, suspend.Choose(ops...), s, func(v int, _ error) {
					chosen = append(chosen, v)
					_ = done.Fill(struct{}{})
				})
			})
			_, err := done.Await(ctx)
			return err
		})
		return chosen
	}
	if a, b := fmt.Sprint(run(0)), fmt.Sprint(run(0)); a != b {
		t.Errorf("the default seed chose %s, and then %s", a, b)
	}
	if a, b := fmt.Sprint(run(1)), fmt.Sprint(run(2)); a == b {
		t.Errorf("two seeds chose %s", a)
	}
}

// A Spawner that wraps another has the capabilities of the wrapped one.
func TestAsLooksThroughWrappers(t *testing.T) {
	s := fifo.New(fifo.Options{})
	r, ok := suspend.As[sched.Rand](wrapper{wrapper{s}})
	if !ok {
		t.Fatal("the random source of a wrapped scheduler is not found")
	}
	if a, b := r.Uint64(), r.Uint64(); a == b {
		t.Error("the random source of a wrapped scheduler repeats itself")
	}
	if _, ok := suspend.As[sched.Timers](wrapper{suspend.Goroutines}); ok {
		t.Error("goroutines have timers of their own")
	}
	if _, ok := suspend.As[sched.Clock](nil); ok {
		t.Error("nil is a clock")
	}
}

type wrapper struct{ suspend.Spawner }

func (w wrapper) Unwrap() suspend.Spawner { return w.Spawner }

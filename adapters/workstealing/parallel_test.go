package workstealing_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
)

func TestForCoversTheRangeOnce(t *testing.T) {
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		for _, c := range []struct{ n, grain int }{{0, 1}, {1, 1}, {1, 0}, {7, 1}, {100, 0}, {100, 7}, {100, 1000}, {1000, -1}} {
			seen := make([]atomic.Int32, c.n)
			run(func() {
				err := workstealing.For(bg, p, -3, c.n-3, c.grain, func(_ context.Context, lo, hi int) error {
					if lo >= hi || c.grain > 0 && hi-lo > c.grain {
						t.Errorf("part [%d, %d) with grain %d", lo, hi, c.grain)
					}
					for i := lo; i < hi; i++ {
						seen[i+3].Add(1)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			for i := range seen {
				if n := seen[i].Load(); n != 1 {
					t.Errorf("%v: index %d seen %d times", c, i, n)
				}
			}
		}
	})
}

func TestForWideRange(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 2}, func(p *workstealing.Pool) {
		var parts atomic.Int64
		err := workstealing.For(bg, p, math.MinInt, math.MaxInt, 0, func(_ context.Context, lo, hi int) error {
			if lo >= hi {
				t.Error(lo, hi)
			}
			parts.Add(1)
			return nil
		})
		if n := parts.Load(); err != nil || n < 16 || n > 32 {
			t.Error(n, err)
		}
		if err := workstealing.For(bg, p, 5, 3, 1, func(context.Context, int, int) error { t.Error("runs"); return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestForStopsAtAnError(t *testing.T) {
	failed := errors.New("failed")
	withPool(t, workstealing.Options{Workers: 1}, func(p *workstealing.Pool) {
		for _, way := range []string{"error", "panic", "cancel"} {
			ctx, cancel := context.WithCancel(bg)
			begun, want := 0, failed
			var raised any
			in(p, func() { // in order on one worker
				defer func() { raised = recover() }()
				err := workstealing.For(ctx, p, 0, 1000, 1, func(_ context.Context, i, _ int) error {
					begun++
					if i != 10 {
						return nil
					}
					switch way {
					case "panic":
						panic(failed)
					case "cancel":
						want = context.Canceled
						cancel()
						return nil
					}
					return failed
				})
				if !errors.Is(err, want) {
					t.Error(way, err)
				}
			})
			cancel()
			if begun != 11 || way == "panic" && raised != failed || way != "panic" && raised != nil {
				t.Errorf("%s: %d begun, %v raised", way, begun, raised)
			}
		}
	})
}

func TestForNested(t *testing.T) {
	sizes(t, func(t *testing.T, n int) {
		withPool(t, workstealing.Options{Workers: n}, func(p *workstealing.Pool) {
			var sum atomic.Int64
			err := workstealing.For(bg, p, 0, 30, 1, func(ctx context.Context, i, _ int) error {
				suspend.Yield()
				v, err := workstealing.Reduce(ctx, p, 0, i, 3, 0,
					func(_ context.Context, lo, hi int) (int, error) { suspend.Yield(); return hi - lo, nil },
					func(x, y int) int { return x + y })
				sum.Add(int64(v))
				return err
			})
			if err != nil || sum.Load() != 30*29/2 {
				t.Error(sum.Load(), err)
			}
		})
	})
}

func TestReduceKeepsTheOrder(t *testing.T) {
	callers(t, func(t *testing.T, p *workstealing.Pool, run func(func())) {
		for _, n := range []int{0, 1, 2, 77} {
			want := "|"
			if n > 0 {
				want = ""
			}
			for i := range n {
				want += fmt.Sprint(i, " ")
			}
			run(func() {
				got, err := workstealing.Reduce(bg, p, 0, n, 3, "|", func(_ context.Context, lo, hi int) (s string, err error) {
					for ; lo < hi; lo++ {
						s += fmt.Sprint(lo, " ")
					}
					return s, nil
				}, func(x, y string) string { return x + y })
				if got != want || err != nil {
					t.Error(got, err)
				}
			})
		}
	})
}

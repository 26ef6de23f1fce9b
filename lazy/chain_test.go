//go:build unix

package lazy_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// chain forces n lazy values in a row, each in a task of its own, and returns the processor time. The links are made in the given
// order.
func chain(t *testing.T, n int, order func(n int) []int) (took time.Duration) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		lazies := make([]*lazy.Lazy[int], n)
		gates := make([]promise.Promise[struct{}], n) // each value waits for its gate before it forces the next one
		for i := range lazies {
			lazies[i] = lazy.New(func(ctx context.Context) (int, error) {
				_, _ = gates[i].Await(ctx)
				if i == n-1 {
					return n, nil
				}
				return lazies[i+1].Force(ctx)
			}, lazy.Restart)
		}
		ended := 0
		for i := range lazies { // all functions run, and no two are connected
			_ = s.Go(func() {
				if v, err := lazies[i].Force(bg); v != n || err != nil {
					t.Errorf("Force = %d, %v", v, err)
				}
				ended++
			})
		}
		suspend.Yield()
		began := processor.Used()
		for _, i := range order(n) {
			if i != n-1 {
				_ = gates[i].Fill(struct{}{})
				suspend.Yield()
			}
		}
		_ = gates[n-1].Fill(struct{}{})
		for ended < n {
			suspend.Yield()
		}
		took = processor.Used() - began
	})
	return took
}

// The time for a chain is nearly proportional to its length. With a quadratic algorithm, a chain of 16,000 takes 20 seconds, and
// blocks every other lazy value of the process meanwhile.
func TestAChainIsForcedInNearlyLinearTime(t *testing.T) {
	few, many := 1_000, 16_000
	if schedtest.Race || testing.Short() {
		few, many = 200, 3_200
	}
	for name, order := range map[string]func(n int) []int{
		"from the end": func(n int) (order []int) {
			for i := range n {
				order = append(order, n-1-i)
			}
			return order
		},
		"from the beginning": func(n int) (order []int) {
			for i := range n {
				order = append(order, i)
			}
			return order
		},
		"at random": func(n int) []int { return rand.New(rand.NewPCG(1, 1)).Perm(n) },
	} {
		t.Run(name, func(t *testing.T) {
			const enough = 80
			short, long, ratio := time.Hour, time.Hour, 0.0
			for n := 0; n < 2 || n < 20 && ratio > enough; n++ { // repeats, because other processes take time, too
				short, long = min(short, chain(t, few, order)), min(long, chain(t, many, order))
				ratio = float64(long) / float64(short)
			}
			t.Logf("%d in %v, %d in %v: %.0f times", few, short, many, long, ratio)
			if ratio > enough {
				t.Errorf("%d times as many take %.0f times as long", many/few, ratio)
			}
		})
	}
}

// usedRow does what chain does, with functions that have forced other values before: one of their own, and one for which they
// have waited. Both have ended.
func usedRow(t *testing.T, n int) (took time.Duration) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ls, gates := make([]*lazy.Lazy[int], n), make([]promise.Promise[int], n)
		var all promise.Promise[int]
		common := lazy.New(func(ctx context.Context) (int, error) { return all.Await(ctx) }, lazy.Record)
		for i := range ls {
			ls[i] = lazy.New(func(ctx context.Context) (int, error) {
				_, _ = lazy.New(one, lazy.Record).Force(ctx)
				_, _ = common.Force(ctx)
				if _, _ = gates[i].Await(ctx); i+1 < n {
					return ls[i+1].Force(ctx)
				}
				return 1, nil
			}, lazy.Record)
			_ = s.Go(func() { _, _ = ls[i].Force(bg) })
		}
		suspend.Yield()
		_ = all.Fill(1)
		suspend.Yield()
		began := processor.Used()
		for i := range ls {
			_ = gates[i].Fill(1)
			suspend.Yield()
		}
		_, _ = ls[0].Force(bg)
		took = processor.Used() - began
	})
	return took
}

// Functions that have forced other values before do not make the links of a chain slower. If each link had to look at all earlier
// links, eight times as many would take 64 times as long.
func TestARowWhoseFunctionsHaveForcedBefore(t *testing.T) {
	const few, many, enough = 250, 2000, 30
	short, long := time.Hour, time.Hour
	for n := 0; n < 2 || n < 20 && long > enough*short; n++ { // repeats, because other processes take time, too
		short, long = min(short, usedRow(t, few)), min(long, usedRow(t, many))
	}
	t.Logf("%d in %v, %d in %v", few, short, many, long)
	require.Less(t, long, enough*short)
}

package beside

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	usual "golang.org/x/time/rate"

	"github.com/braidgo/braid/rate"
)

// A limiter is the Limiter of package rate, or that of x/time.
type limiter interface {
	WaitN(ctx context.Context, n int) error
	SetBurst(n int)
	Tokens() float64
	Burst() int
}

// TestRate performs random calls on the two Limiters, in virtual time. Their results and times are the same, unless the Limit or
// the burst changes while calls wait: only package rate applies such a change to waiting calls.
func TestRate(t *testing.T) {
	for seed := range uint64(300) {
		var results [2][]result
		for i := range results {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := rate.NewLimiter(2, 3), usual.NewLimiter(2, 3)
				if i == 0 {
					results[i] = calls(seed, ours, ours.Allow, func(limit float64) { ours.SetLimit(rate.Limit(limit)) })
				} else {
					results[i] = calls(seed, theirs, func(n int) bool { return theirs.AllowN(time.Now(), n) }, func(limit float64) { theirs.SetLimit(usual.Limit(limit)) })
				}
			})
		}
		for i, r := range results[0] {
			require.Equal(t, results[1][i].what, r.what, "seed %d, call %d: %v", seed, i, results)
			require.InDelta(t, results[1][i].value, r.value, 1e-5, "seed %d, call %d: %v", seed, i, results)
		}
	}
}

// A result has a text and a number: the time in seconds at which a wait has ended, or a number of tokens.
type result struct {
	what  string
	value float64
}

func calls(seed uint64, l limiter, allow func(n int) bool, setLimit func(limit float64)) []result {
	rng, begun := rand.New(rand.NewPCG(seed, 1)), time.Now()
	results := make([]result, 40)
	var waiting atomic.Int32
	limit := 2.
	for i := range results {
		n := rng.IntN(6)
		switch kind := rng.IntN(12); {
		case kind < 3:
			time.Sleep(time.Duration(1+rng.IntN(3000)) * time.Millisecond)
		case kind < 6:
			results[i].what = fmt.Sprint("allow ", n, " ", allow(n))
		case kind == 6:
			results[i] = result{"tokens", l.Tokens()}
		case kind == 7 && waiting.Load() == 0:
			limit = []float64{0, 0.5, 1, 10, float64(rate.Inf)}[rng.IntN(5)]
			setLimit(limit)
		case kind == 8 && waiting.Load() == 0:
			l.SetBurst(n)
			results[i].what = fmt.Sprint("burst ", l.Burst())
		case kind > 8 && limit > 0:
			ctx, stop := context.Background(), func() {}
			if kind > 9 {
				ctx, stop = context.WithTimeout(ctx, time.Duration(rng.IntN(5000))*time.Millisecond+time.Microsecond)
			}
			waiting.Add(1)
			go func() {
				defer func() { stop(); waiting.Add(-1) }()
				err := l.WaitN(ctx, n)
				results[i] = result{fmt.Sprint("wait ", n, " ", err == nil), time.Since(begun).Seconds()}
			}()
			synctest.Wait()
		}
		synctest.Wait()
	}
	time.Sleep(time.Hour)
	synctest.Wait()
	return results
}

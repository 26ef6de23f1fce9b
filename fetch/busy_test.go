package fetch_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A processor runs for a millisecond on average, and then stops, because other programs use it.
type processor struct {
	rng   *rand.Rand
	pause time.Duration // the mean
	left  time.Duration // until the next pause
}

// times returns the times at which n pieces of work are done, each of which takes d.
func (p *processor) times(n int, d time.Duration) (done []time.Duration) {
	at := time.Duration(0)
	for range n {
		for ; p.left < d; p.left = time.Duration(p.rng.ExpFloat64() * float64(time.Millisecond)) {
			at += time.Duration(p.rng.ExpFloat64() * float64(p.pause))
		}
		p.left -= d
		at += d
		done = append(done, at)
	}
	return done
}

// On a busy processor, a crowd of outsiders is split into few batches. The query has two levels with 4,000 resolvers in all, like a query
// of a GraphQL server. The times of their Gets are those of a processor that stops for 8 ms again and again. A loader that waits for a
// millisecond after the first request, as dataloadgen does, sends a median of 13 batches. At p95, fetch sends 10. The test grants no
// turns, so that only the timer decides: on a busy machine, a turn lasts until every member of a crowd that can run has run.
func TestSettlingOnABusyProcessor(t *testing.T) {
	const work, pause = 2 * time.Microsecond, 8 * time.Millisecond
	seeds := uint64(20)
	if schedtest.Race {
		seeds = 3
	}
	var ours, window []int
	for seed := range seeds {
		p := &processor{rng: rand.New(rand.NewPCG(seed, 1)), pause: pause}
		levels := [][]time.Duration{p.times(1000, work), p.times(3000, work)}
		batches := 0
		for _, come := range levels {
			end := time.Duration(-1)
			for _, at := range come {
				if at > end {
					batches++
					end = at + time.Millisecond
				}
			}
		}
		window = append(window, batches)
		synctest.Test(t, func(t *testing.T) {
			src := newNumbers(fetch.SourceOptions{})
			ctx, s := fetch.Open(t.Context(), fetch.Options{Settle: -1})
			defer s.Close()
			for l, come := range levels {
				var all sync.WaitGroup
				for i, at := range come {
					all.Go(func() {
						time.Sleep(at)
						_, err := src.Get(ctx, 100+10_000*l+i)
						require.NoError(t, err)
					})
				}
				all.Wait()
			}
			require.Equal(t, 4000, s.Stats().Keys)
			ours = append(ours, s.Stats().Batches)
		})
	}
	slices.Sort(ours)
	slices.Sort(window)
	t.Log("fetch", ours, "a window of 1 ms", window)
	require.GreaterOrEqual(t, window[len(window)/2], 13, "the processor is not as busy as it should be")
	require.LessOrEqual(t, ours[(len(ours)-1)*95/100], 10)
}

package stage_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
)

// A curve is a resource whose throughput has a smooth peak, after the universal scalability law.
type curve struct {
	mu   sync.Mutex
	rand *rand.Rand
	in   int
}

const (
	curveBase = 10 * time.Millisecond
	curveA    = 0.02
	curveB    = 0.0005
)

func curveAt(n float64) float64 { return n / (1 + curveA*(n-1) + curveB*n*(n-1)) / curveBase.Seconds() }

// peak returns the maximum throughput.
func peak() (most float64) {
	for n := range 400 {
		most = max(most, curveAt(float64(n+1)))
	}
	return most
}

func (c *curve) use() {
	c.mu.Lock()
	c.in++
	n := float64(c.in)
	d := float64(curveBase) * (1 + curveA*(n-1) + curveB*n*(n-1)) * (0.5 + c.rand.Float64())
	c.mu.Unlock()
	time.Sleep(time.Duration(d))
	c.mu.Lock()
	c.in--
	c.mu.Unlock()
}

// offered is the result of a load: the responses within the patience of 100 ms as a part of the peak, and the time until a
// rejection.
type offered struct {
	good    float64
	served  float64       // the good responses as a part of the load
	no, yes time.Duration // p99
	width   int
}

// offer sends load times the peak to a stage, as a Poisson process, and measures after a warm-up.
func offer(t *testing.T, load float64, warm, measured time.Duration, o stage.Options) offered {
	return offerFrom(t, 1, load, warm, measured, o)
}

func offerFrom(t *testing.T, seed uint64, load float64, warm, measured time.Duration, o stage.Options) (r offered) {
	c := &curve{rand: rand.New(rand.NewPCG(seed, seed))}
	o.Reject = true
	s := stage.New("resource", func(context.Context, int) (int, error) { c.use(); return 0, nil }, o)
	rng := rand.New(rand.NewPCG(2*seed, 2*seed))
	var mu sync.Mutex
	var yes, no []time.Duration
	var all sync.WaitGroup
	start := time.Now()
	for at := start; ; {
		at = at.Add(time.Duration(rng.ExpFloat64() / (load * peak()) * float64(time.Second)))
		if at.Sub(start) > warm+measured {
			break
		}
		time.Sleep(time.Until(at))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
			defer cancel()
			begun := time.Now()
			_, err := s.Do(ctx, 0)
			took := time.Since(begun)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case begun.Sub(start) < warm:
			case err == nil:
				yes = append(yes, took)
			default:
				no = append(no, took)
			}
		})
	}
	all.Wait()
	r.width = s.Stats().Width
	require.NoError(t, s.Shutdown(bg))
	slices.Sort(yes)
	slices.Sort(no)
	r.served = float64(len(yes)) / float64(len(yes)+len(no))
	r.good = float64(len(yes)) / measured.Seconds() / peak()
	if n := len(yes); n > 0 {
		r.yes = yes[n*99/100]
	}
	if n := len(no); n > 0 {
		r.no = no[n*99/100]
	}
	return r
}

// A rejection comes soon, however large the overload is, even near the capacity, where the queue alternates between short and
// long.
func TestTimeToANo(t *testing.T) {
	loads := []float64{0.7, 1.1, 1.3, 1.5, 2, 8}
	if schedtest.Race {
		loads = loads[3:4]
	} else if testing.Short() {
		loads = loads[2:4]
	}
	for _, limit := range []bool{false, true} {
		for _, load := range loads {
			synctest.Test(t, func(t *testing.T) {
				o := stage.Options{Width: 30, Queue: 160, Delay: 5 * time.Millisecond}
				if limit {
					o.Limit = stage.Climb(0, 400)
				}
				r := offer(t, load, 4*time.Second/time.Duration(max(load, 1)), 8*time.Second/time.Duration(max(load, 1)), o)
				t.Logf("%.1fx, limit %v: good %.2f, p99 %v, p99 of a no %v, width %d", load, limit, r.good, r.yes, r.no, r.width)
				require.LessOrEqual(t, r.no, 15*time.Millisecond)
				require.GreaterOrEqual(t, r.good, min(load, 0.9)-0.02)
				require.LessOrEqual(t, r.yes, 45*time.Millisecond)
			})
		}
	}
}

// Delay does not prevent Climb from finding the width. Below the peak nearly every task is served, and above it the peak
// throughput is served, whatever the initial width. If the width is slightly too small for the load, shedding empties the queue,
// which must not look like an idle stage. Three pairs start with such a width.
func TestDelayDoesNotStarveClimb(t *testing.T) {
	type pair struct {
		start int
		load  float64
		seed  uint64
	}
	pairs := []pair{{1, 8, 1}, {13, 0.75, 4}, {14, 0.75, 7}, {16, 0.75, 8}}
	if !testing.Short() && !schedtest.Race {
		for _, start := range []int{1, 3, 10, 30, 100, 300} {
			for _, load := range []float64{0.5, 0.7, 0.85, 0.95, 1.1} {
				pairs = append(pairs, pair{start, load, 1})
			}
		}
	}
	for _, p := range pairs {
		synctest.Test(t, func(t *testing.T) {
			warm, measured := 20*time.Second, 10*time.Second
			if p.load > 1 {
				warm, measured = 8*time.Second, 2*time.Second
			}
			r := offerFrom(t, p.seed, p.load, warm, measured,
				stage.Options{Width: p.start, Queue: 160, Delay: 5 * time.Millisecond, Limit: stage.Climb(0, 400)})
			t.Logf("from %d at %.2fx: served %.4f, good %.2f, width %d", p.start, p.load, r.served, r.good, r.width)
			switch {
			case p.load <= 0.75:
				require.Equal(t, 1.0, r.served, "from %d at %.2fx", p.start, p.load)
			case p.load < 1:
				require.GreaterOrEqual(t, r.served, 0.99, "from %d at %.2fx", p.start, p.load)
			default:
				require.GreaterOrEqual(t, r.good, 0.88, "from %d at %.2fx", p.start, p.load)
			}
		})
	}
}

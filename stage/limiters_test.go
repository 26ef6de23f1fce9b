package stage_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage"
)

// Climb is compared with these limiters. They look at latencies, or at the queue, and not at the throughput.

// A gradient is Gradient2 of Netflix's concurrency-limits. The width depends on the ratio of the long-term latency to the current
// latency.
type gradient struct{ limit, long float64 }

func (g *gradient) Update(s stage.Sample) int {
	short := s.Service.Seconds()
	if g.limit == 0 {
		g.limit, g.long = float64(s.Width), short
	}
	g.long += (short - g.long) * 2 / (600 + 1)
	if g.long > 2*short {
		g.long *= 0.95
	}
	to := g.limit*max(0.5, min(1, 1.5*g.long/short)) + 4
	g.limit = min(max(g.limit*0.8+to*0.2, 1), 400)
	return int(g.limit)
}

// A vegas is Vegas of the same library. It uses the minimum latency to estimate how many tasks wait inside the resource.
type vegas struct {
	limit, least float64
	seen, after  int
}

func (v *vegas) Update(s stage.Sample) int {
	rtt := s.Service.Seconds()
	if v.limit == 0 {
		v.limit = float64(s.Width)
	}
	if v.seen += s.Done; v.least == 0 || v.seen > v.after { // measures the minimum again
		v.seen, v.after, v.least = 0, 30*int(v.limit), rtt
	}
	v.least = min(v.least, rtt)
	inside, log := math.Ceil(v.limit*(1-v.least/rtt)), max(1, math.Log10(v.limit))
	switch {
	case inside <= log:
		v.limit += 6 * log
	case inside < 3*log:
		v.limit += log
	case inside > 6*log:
		v.limit -= log
	}
	v.limit = min(max(v.limit, 1), 400)
	return int(v.limit)
}

// A seda is the controller of thread pools of SEDA (2001). It adds threads while the queue is long.
type seda struct{}

func (seda) Update(s stage.Sample) int {
	if s.MinQueue > 100 {
		return min(s.Width+2, 400)
	}
	return s.Width
}

// TestOtherLimiters makes the table of TestClimb with these limiters. In some phase each of them loses more than a tenth of the
// capacity, which Climb never does.
func TestOtherLimiters(t *testing.T) {
	for name, limiter := range map[string]func() stage.Limiter{
		"Gradient2": func() stage.Limiter { return new(gradient) },
		"Vegas":     func() stage.Limiter { return new(vegas) },
		"SEDA":      func() stage.Limiter { return seda{} },
	} {
		synctest.Test(t, func(t *testing.T) {
			used, widths := limited(t, 10, limiter(), 2*time.Second)
			t.Logf("%s: used %.2f, widths %d", name, used, widths)
			require.Less(t, slices.Min(used), 0.8, name)
		})
	}
}

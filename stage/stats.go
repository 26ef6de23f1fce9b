package stage

import (
	"math/bits"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// Stats are the figures of a stage at one moment. They always add up: Arrived is Accepted plus Rejected, and Accepted is
// Completed plus Failed, Late, Cancelled, Waiting, Busy and Delayed.
type Stats struct {
	Name string

	Arrived   uint64
	Accepted  uint64
	Rejected  uint64 // refused because the queue was full, or the stage closed
	Late      uint64 // shed by Delay, or displaced by a task of a higher priority
	Cancelled uint64 // by their callers
	Completed uint64
	Failed    uint64 // for good
	Retried   uint64 // tries that failed and were followed by another
	Dropped   uint64 // of Failed, those whose error is an ErrOverload

	Waiting  int // in the queue
	Busy     int // in progress
	Delayed  int // between two tries
	Outside  int // callers that wait for room
	Handlers int // handlers that run, or wait for room in the next stage
	Width    int
	Queue    int
	Closed   bool // Close has begun

	Wait    Histogram // from acceptance to the beginning
	Service Histogram // of a handler
}

// Sub returns the figures of the time since earlier: counts and histograms are differences, levels stay.
func (s Stats) Sub(earlier Stats) Stats {
	s.Arrived -= earlier.Arrived
	s.Accepted -= earlier.Accepted
	s.Rejected -= earlier.Rejected
	s.Late -= earlier.Late
	s.Cancelled -= earlier.Cancelled
	s.Completed -= earlier.Completed
	s.Failed -= earlier.Failed
	s.Retried -= earlier.Retried
	s.Dropped -= earlier.Dropped
	s.Wait.sub(&earlier.Wait)
	s.Service.sub(&earlier.Service)
	return s
}

// counts are the figures that only grow, with their histograms.
type counts struct {
	arrived, accepted, rejected uint64
	late, cancelled             uint64
	completed, failed           uint64
	retried, dropped            uint64
	wait, service               Histogram
	crowded                     atomicx.Bool // a task was rejected: look for room before one is made
}

// Stats returns the figures. It never suspends.
func (s *Stage[In, Out]) Stats() Stats {
	s.pool.guard.Lock()
	defer s.pool.guard.Unlock()
	return s.stats()
}

func (s *Stage[In, Out]) stats() Stats { return s.core.stats(s.outside.Len()) }

func (c *core) stats(outside int) Stats {
	return Stats{
		Name:    c.name,
		Arrived: c.arrived, Accepted: c.accepted, Rejected: c.rejected,
		Late: c.late, Cancelled: c.cancelled, Completed: c.completed, Failed: c.failed, Retried: c.retried, Dropped: c.dropped,
		Waiting: c.waiting, Busy: c.progress, Delayed: c.delayed, Outside: outside, Handlers: c.slots,
		Width: c.width, Queue: c.o.Queue, Closed: c.closed,
		Wait: c.wait, Service: c.service,
	}
}

// PoolStats are the figures of a pool.
type PoolStats struct {
	Name    string
	Width   int
	Running int // handlers that run, and workers on their way to one
	Workers int // alive, idle ones included
	Idle    int
}

// Stats returns the figures. It never suspends.
func (p *Pool) Stats() PoolStats {
	p.guard.Lock()
	defer p.guard.Unlock()
	return PoolStats{p.name, p.width, p.running, p.alive, len(p.idle)}
}

// Observed is something that has figures: a stage, whatever its types.
type Observed interface{ Stats() Stats }

// Stages returns the stages of a flow, in order.
func Stages[In, Out any](f Flow[In, Out]) []Observed { return f.describe(nil) }

func (s *Stage[In, Out]) describe(to []Observed) []Observed { return append(to, s) }

// buckets of a histogram: 40 octaves of 4 each. Below 4 ns each nanosecond has its own.
const (
	buckets   = 160
	perOctave = 4
)

// A Histogram counts durations, with an error of at most a quarter.
type Histogram struct {
	Counts [buckets]uint64
	Count  uint64
	Sum    time.Duration
}

func bucket(d int64) int {
	if d < perOctave {
		return int(max(d, 0))
	}
	octave := bits.Len64(uint64(d)) - 3 // 4..7 is octave 0, with all its bits
	return min(perOctave+octave*perOctave+int(d>>octave)&(perOctave-1), buckets-1)
}

// from returns the least duration of a bucket.
func from(i int) time.Duration {
	if i < perOctave {
		return time.Duration(i)
	}
	i -= perOctave
	return time.Duration(perOctave+i%perOctave) << (i / perOctave)
}

func (h *Histogram) add(d int64) {
	h.Counts[bucket(d)]++
	h.Count++
	h.Sum += time.Duration(d)
}

func (h *Histogram) sub(g *Histogram) {
	for i := range h.Counts {
		h.Counts[i] -= g.Counts[i]
	}
	h.Count -= g.Count
	h.Sum -= g.Sum
}

// Mean returns the mean duration, 0 of none.
func (h *Histogram) Mean() time.Duration {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / time.Duration(h.Count)
}

// Quantile returns the duration that a part q of all is not above, from 0 to 1; 0 of none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.Count))
	rank = min(max(rank, 1), h.Count)
	var seen uint64
	for i, n := range h.Counts {
		if seen += n; seen >= rank && n > 0 {
			return (from(i) + from(i+1)) / 2
		}
	}
	return 0
}

// Buckets calls yield with the upper bound of each bucket that is not empty, and the number of durations up to it.
func (h *Histogram) Buckets(yield func(upTo time.Duration, cumulative uint64) bool) {
	var seen uint64
	for i, n := range h.Counts {
		if seen += n; n > 0 && !yield(from(i+1), seen) {
			return
		}
	}
}

package stage

import (
	"math"
	"math/bits"
	"time"
)

// A histogram has 40 octaves of 4 buckets each. Below 4 ns, each nanosecond has a bucket.
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
	octave := bits.Len64(uint64(d)) - 3 // durations from 4 to 7 ns are in octave 0
	return min(perOctave+octave*perOctave+int(d>>octave)&(perOctave-1), buckets-1)
}

// from returns the shortest duration of bucket i.
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

// Quantile returns an estimate of the q-quantile of the durations, for q from 0 to 1. Quantile returns 0 if h is empty.
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

// Buckets calls yield for each bucket that is not empty, with its upper bound and the number of durations up to this bound. The last
// bucket, from half an hour on, has the longest duration as its bound.
func (h *Histogram) Buckets(yield func(upTo time.Duration, cumulative uint64) bool) {
	var seen uint64
	for i, n := range h.Counts {
		upTo := from(i + 1)
		if i == len(h.Counts)-1 {
			upTo = math.MaxInt64
		}
		if seen += n; n > 0 && !yield(upTo, seen) {
			return
		}
	}
}

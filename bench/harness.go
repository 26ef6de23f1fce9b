package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// A row is one comparison: the same work, done by us and by a peer.
type row struct {
	id        string
	against   string  // the peer, in a few words
	unit      string  // what a figure is: "ns" or "bytes", per operation
	must, aim float64 // of the ratio; 0: the row is there to be read, and has no verdict
	rounds    int     // 0: as many as the mode has
	cold      bool    // each round is from scratch: there is nothing to warm up
	open      func(m mode) (*sides, error)
}

// A side measures for about d and returns what one operation cost.
type side func(d time.Duration) (float64, error)

// sides are the two that a row compares. What open set up, and close takes down, is not counted.
type sides struct {
	ours, peer side
	note       string // what the reader has to know of this machine
	close      func()
}

// A mode says how long is measured.
type mode struct {
	Rounds int           `json:"rounds"` // of one measurement of each side
	Round  time.Duration `json:"round"`  // of a measurement
	Tiny   bool          `json:"tiny,omitempty"`
}

var (
	quick = mode{Rounds: 25, Round: 24 * time.Millisecond} // many short ones: a machine that others use changes its speed within a second
	full  = mode{Rounds: 15, Round: 100 * time.Millisecond}
	tiny  = mode{Rounds: 1, Round: time.Millisecond, Tiny: true} // the tests of the rows: nothing is measured
)

// of is n, except in tests.
func (m mode) of(n, tiny int) int {
	if m.Tiny {
		return tiny
	}
	return n
}

// A result is what one row has come to. Ours and Peer are medians, Ratio is the median of the ratios of the rounds,
// which lie between Low and High if one at either end is left out.
type result struct {
	ID      string        `json:"id"`
	Against string        `json:"against"`
	Unit    string        `json:"unit"`
	Ours    float64       `json:"ours"`
	Peer    float64       `json:"peer"`
	Ratio   float64       `json:"ratio"`
	Low     float64       `json:"low"`
	High    float64       `json:"high"`
	Must    float64       `json:"must,omitempty"`
	Aim     float64       `json:"aim,omitempty"`
	Note    string        `json:"note,omitempty"`
	Took    time.Duration `json:"took"`
	Ratios  []float64     `json:"ratios"`
}

// verdict is ok, SHORT, or a dash where there is nothing to be reached.
func (r result) verdict() string {
	switch {
	case r.Must == 0:
		return "-"
	case r.Ratio <= r.Must:
		return "ok"
	}
	return "SHORT"
}

func (r result) String() string {
	s := fmt.Sprintf("%-24s %10s %10s  %5.2f [%.2f–%.2f] must=%s aim=%s %s",
		r.ID, show(r.Ours, r.Unit), show(r.Peer, r.Unit), r.Ratio, r.Low, r.High, bound(r.Must), bound(r.Aim), r.verdict())
	if r.Note != "" {
		s += " (" + r.Note + ")"
	}
	return s
}

func bound(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

func show(v float64, unit string) string {
	switch unit {
	case "ns":
	case "bytes":
		return fmt.Sprintf("%.1fB", v)
	default:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	for _, u := range []struct {
		name string
		ns   float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if v >= u.ns {
			return fmt.Sprintf("%.2f%s", v/u.ns, u.name)
		}
	}
	return fmt.Sprintf("%.2fns", v)
}

// measure runs r: both sides once to warm up, and then rounds, in which they take turns to be the first.
func measure(r row, m mode) (result, error) {
	begun := time.Now()
	res := result{ID: r.id, Against: r.against, Unit: r.unit, Must: r.must, Aim: r.aim}
	s, err := r.open(m)
	if err != nil {
		return res, err
	}
	if s.close != nil {
		defer s.close()
	}
	res.Note = s.note
	rounds := cmp.Or(r.rounds, m.Rounds)
	if m.Tiny {
		rounds = 1
	}
	both := []func() ([]float64, error){s.ours.once(m), s.peer.once(m)}
	var ours, peer []float64
	err = interleave(both, rounds, r.cold, nil, func(i int, v []float64) {
		if i == 0 {
			ours = append(ours, v[0])
		} else {
			peer = append(peer, v[0])
		}
	})
	if err != nil {
		return res, err
	}
	for i := range ours {
		res.Ratios = append(res.Ratios, ours[i]/peer[i])
	}
	res.Ours, res.Peer, res.Ratio = median(ours), median(peer), median(res.Ratios)
	sorted := slices.Sorted(slices.Values(res.Ratios))
	if len(sorted) > 4 {
		sorted = sorted[1 : len(sorted)-1]
	}
	res.Low, res.High, res.Took = sorted[0], sorted[len(sorted)-1], time.Since(begun)
	return res, nil
}

func (s side) once(m mode) func() ([]float64, error) {
	return func() ([]float64, error) {
		v, err := s(m.Round)
		return []float64{v}, err
	}
}

// interleave measures each of sides once per round, beginning with another in each round, and once before unless
// cold, which does not count. Each begins without the garbage of whoever came before. There are fewer rounds, but one
// at least, if enough says so.
func interleave(sides []func() ([]float64, error), rounds int, cold bool, enough func() bool, got func(i int, v []float64)) error {
	first := 0
	if cold {
		first = 1
	}
	for round := first; round <= rounds; round++ {
		for k := range sides {
			i := (k + round) % len(sides)
			if sides[i] == nil {
				continue
			}
			runtime.GC()
			v, err := sides[i]()
			if err != nil {
				return err
			}
			if round > 0 {
				got(i, v)
			}
		}
		if round > 0 && enough != nil && enough() {
			return nil
		}
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// timed makes a side of f, which does n operations. The first call finds out how many last as long as is asked for;
// later ones do as many, and more if that turns out to be too few: something else had the processor when it was found
// out.
func timed(f func(n int)) side {
	return timedBy(func(n int) time.Duration {
		start := time.Now()
		f(n)
		return time.Since(start)
	})
}

// timedBy is timed for an f that says itself what counts.
func timedBy(f func(n int) time.Duration) side {
	n := 0
	return func(d time.Duration) (float64, error) {
		if n == 0 {
			took := time.Duration(0)
			for n = 1; ; n *= 2 {
				if took = f(n); took >= d/4 {
					break
				}
			}
			n = max(1, int(float64(n)*float64(d)/float64(took)))
		}
		took := f(n)
		for range 3 {
			if took >= d/2 {
				break
			}
			n = min(10*n, int(float64(n)*float64(d)/float64(max(1, took)))+1)
			took = f(n)
		}
		return float64(took) / float64(n), nil
	}
}

// pair is a row of two functions that do n operations each.
func pair(id, against string, must, aim float64, open func() (ours, peer func(n int))) row {
	return row{id: id, against: against, unit: "ns", must: must, aim: aim, open: func(mode) (*sides, error) {
		ours, peer := open()
		return &sides{ours: timed(ours), peer: timed(peer)}, nil
	}}
}

package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// A row is one comparison: the same work, done by us and by a peer.
type row struct {
	id        string
	unit      string // what a figure is: "ns" or "bytes", per operation
	must, aim float64
	rounds    int  // 0: as many as the mode has
	cold      bool // each round is from scratch: there is nothing to warm up
	open      func() (*sides, error)
}

// sides are the two that a row compares. Each measures for about d and returns what one operation cost. What open
// set up, and close takes down, is not counted.
type sides struct {
	ours, peer func(d time.Duration) (float64, error)
	close      func()
}

// A mode says how long is measured.
type mode struct {
	Rounds int           `json:"rounds"` // of one measurement of each side
	Round  time.Duration `json:"round"`  // of a measurement
}

var (
	quick = mode{9, 60 * time.Millisecond}
	full  = mode{21, 400 * time.Millisecond}
)

// A result is what one row has come to. Ours and Peer are medians, Ratio is the median of the ratios of the rounds,
// which lie between Low and High if one at either end is left out.
type result struct {
	ID     string    `json:"id"`
	Unit   string    `json:"unit"`
	Ours   float64   `json:"ours"`
	Peer   float64   `json:"peer"`
	Ratio  float64   `json:"ratio"`
	Low    float64   `json:"low"`
	High   float64   `json:"high"`
	Must   float64   `json:"must"`
	Aim    float64   `json:"aim"`
	Ratios []float64 `json:"ratios"`
}

func (r result) ok() bool { return r.Ratio <= r.Must }

func (r result) String() string {
	verdict := "ok"
	if !r.ok() {
		verdict = "SHORT"
	}
	return fmt.Sprintf("%-22s %10s %10s  %5.2f [%.2f–%.2f] must=%.2f aim=%.2f %s",
		r.ID, show(r.Ours, r.Unit), show(r.Peer, r.Unit), r.Ratio, r.Low, r.High, r.Must, r.Aim, verdict)
}

func show(v float64, unit string) string {
	if unit == "bytes" {
		return fmt.Sprintf("%.1fB", v)
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
	res := result{ID: r.id, Unit: r.unit, Must: r.must, Aim: r.aim}
	s, err := r.open()
	if err != nil {
		return res, err
	}
	if s.close != nil {
		defer s.close()
	}
	rounds := cmp.Or(r.rounds, m.Rounds)
	var ours, peer []float64
	for i := range rounds + 1 {
		if i == 0 && r.cold {
			continue
		}
		first, second := s.ours, s.peer
		if i%2 == 1 {
			first, second = second, first
		}
		a, err := once(first, m.Round)
		if err != nil {
			return res, err
		}
		b, err := once(second, m.Round)
		if err != nil {
			return res, err
		}
		if i == 0 {
			continue // the warm-up
		}
		if i%2 == 1 {
			a, b = b, a
		}
		ours, peer, res.Ratios = append(ours, a), append(peer, b), append(res.Ratios, a/b)
	}
	res.Ours, res.Peer, res.Ratio = median(ours), median(peer), median(res.Ratios)
	sorted := slices.Sorted(slices.Values(res.Ratios))
	if len(sorted) > 4 {
		sorted = sorted[1 : len(sorted)-1]
	}
	res.Low, res.High = sorted[0], sorted[len(sorted)-1]
	return res, nil
}

// once begins without the garbage of whoever came before.
func once(side func(time.Duration) (float64, error), d time.Duration) (float64, error) {
	runtime.GC()
	return side(d)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// timed makes a side of f, which does n operations. The first call finds out how many last as long as is asked for;
// later ones do as many.
func timed(f func(n int)) func(time.Duration) (float64, error) {
	return timedBy(func(n int) time.Duration {
		start := time.Now()
		f(n)
		return time.Since(start)
	})
}

// timedBy is timed for an f that says itself what counts.
func timedBy(f func(n int) time.Duration) func(time.Duration) (float64, error) {
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
		return float64(f(n)) / float64(n), nil
	}
}

// pair is a row of two functions that do n operations each.
func pair(id string, must, aim float64, open func() (ours, peer func(n int))) row {
	return row{id: id, unit: "ns", must: must, aim: aim, open: func() (*sides, error) {
		ours, peer := open()
		return &sides{ours: timed(ours), peer: timed(peer)}, nil
	}}
}

package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"
)

// A row is one comparison: the same work, done by us and by a peer.
type row struct {
	id        string
	against   string  // the peer, in a few words
	unit      string  // "ns" or "bytes", per operation
	must, aim float64 // of the ratio; 0: the row is there to be read, and has no verdict
	rounds    int     // 0: the number of the mode
	cold      bool    // each round is from scratch: there is nothing to warm up
	open      func(m mode) (*sides, error)
}

// A side measures for about d and returns the cost of one operation.
type side func(d time.Duration) (float64, error)

// sides are the two that a row compares. What open set up, and close takes down, is not counted.
type sides struct {
	ours, peer side
	note       string // a remark about this machine
	close      func()
}

// A mode says how long is measured.
type mode struct {
	Rounds int           `json:"rounds"` // of one measurement of each side
	Round  time.Duration `json:"round"`  // of a measurement
	Tiny   bool          `json:"tiny,omitempty"`
}

var (
	quick = mode{Rounds: 24, Round: 24 * time.Millisecond} // many short ones: a machine that others use changes its speed within a second
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

// A result is that of one row. Ours and Peer are medians. Ratio is the median of the ratios of the rounds, which lie between Low and High if
// one at either end is left out.
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

// A trial is the measurement of a row. It is made in laps. Between two of them the other rows have one, so that no row is measured only in a
// bad half minute of the machine. After its least rounds it is done, unless the must lies in the confidence interval of the ratio. Then it
// goes on until the must lies outside, on either side, or as long as longer says.
type trial struct {
	row
	m                  mode
	least              int
	note               string
	ours, peer, ratios []float64 // of each round
	took, extra        time.Duration
}

const (
	laps   = 3
	oneLap = 4 // rounds, at least: to open a row takes time as well
	longer = 10 * time.Second
)

func newTrial(r row, m mode) *trial {
	x := &trial{row: r, m: m, least: cmp.Or(r.rounds, m.Rounds)}
	switch {
	case m.Tiny:
		x.least = 1
	case r.rounds == 0 && r.must == 0: // there is nothing to be certain about
		x.least /= 2
	}
	return x
}

// lap opens the row, runs both sides once to warm up, and then some rounds, in which they take turns to be the first.
func (x *trial) lap() error {
	begun := time.Now()
	s, err := x.open(x.m)
	if err != nil {
		return err
	}
	if s.close != nil {
		defer s.close()
	}
	x.note = s.note
	left, rounds := x.least-len(x.ratios), max(oneLap, x.least/laps)
	if left > 0 {
		rounds = min(rounds, left)
	}
	both := []func() ([]float64, error){s.ours.once(x.m), s.peer.once(x.m)}
	err = interleave(both, rounds, x.cold, nil, func(i int, v []float64) {
		if i == 0 {
			x.ours = append(x.ours, v[0])
		} else {
			x.peer = append(x.peer, v[0])
		}
	})
	if err != nil {
		return err
	}
	for i := len(x.ratios); i < len(x.ours); i++ {
		x.ratios = append(x.ratios, x.ours[i]/x.peer[i])
	}
	took := time.Since(begun)
	if x.took += took; left <= 0 {
		x.extra += took
	}
	return nil
}

// done reports whether there are to be no more laps.
func (x *trial) done() bool {
	switch {
	case len(x.ratios) < x.least:
		return false
	case x.m.Tiny || x.must == 0 || x.extra >= longer:
		return true
	}
	low, high := confidence(x.ratios)
	return x.must < low || high < x.must
}

func (x *trial) result() result {
	sorted := slices.Sorted(slices.Values(x.ratios))
	if len(sorted) > 4 {
		sorted = sorted[1 : len(sorted)-1]
	}
	return result{ID: x.id, Against: x.against, Unit: x.unit, Must: x.must, Aim: x.aim, Note: x.note,
		Ours: median(x.ours), Peer: median(x.peer), Ratio: median(x.ratios), Ratios: x.ratios,
		Low: sorted[0], High: sorted[len(sorted)-1], Took: x.took}
}

// measureRows measures all, and calls measured with each as soon as it is done. What could not be measured has an error.
func measureRows(all []row, m mode, measured func(i int, res result, err error)) {
	left := make([]*trial, len(all))
	for i, r := range all {
		left[i] = newTrial(r, m)
	}
	for any := true; any; {
		any = false
		for i, x := range left {
			if x == nil {
				continue
			}
			any = true
			if err := x.lap(); err != nil {
				left[i] = nil
				measured(i, result{}, err)
			} else if x.done() {
				left[i] = nil
				measured(i, x.result(), nil)
			}
		}
	}
}

func (s side) once(m mode) func() ([]float64, error) {
	return func() ([]float64, error) {
		v, err := s(m.Round)
		return []float64{v}, err
	}
}

// interleave measures each of sides once per round, beginning with another in each round, and once before unless
// cold, which does not count. Each begins without the garbage of the one before. There are fewer rounds, but one
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

// confidence returns the interval in which the true median lies in 19 of 20 cases. It is by ranks, as nothing is assumed about the
// distribution. A look after every lap makes it a little less sure, on either side.
func confidence(v []float64) (low, high float64) {
	v = slices.Sorted(slices.Values(v))
	middle, wide := float64(len(v)-1)/2, 0.98*math.Sqrt(float64(len(v)))
	return v[max(0, int(math.Floor(middle-wide)))], v[min(len(v)-1, int(math.Ceil(middle+wide)))]
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// timed makes a side of f, which does n operations. The first call finds the number that lasts for the requested time. Later calls do
// this number, and more if it turns out to be too small, because another process had the processor in the first call.
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

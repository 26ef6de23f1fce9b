package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/testrig/processor"
)

// A work does n operations.
type work = func(n int)

// A side measures for about d, and returns the cost of one operation.
type side = func(d time.Duration) float64

// A row is one comparison: the same work, done by us and by a peer.
type row struct {
	id        string
	against   string  // the peer, in a few words
	must, aim float64 // of the ratio; 0: the row is there to be read, and has no verdict
	rounds    int     // 0: the number of the mode
	cold      bool    // each round is from scratch: there is nothing to warm up
	gauge     gauge   // measures a work; wall time unless it is given
	batch     int     // the operations of each of the n of a work, if there are several
	constant  float64 // a peer that is a figure, and not measured
	open      func(b *bench) (ours, peer work)
	sides     func(b *bench) (ours, peer side) // instead of open: they measure themselves
}

// A bench is one opening of a row, or of a point of a curve. What open sets up, and the functions given to close take down, is not counted.
type bench struct {
	mode
	notes []string
	ends  []func()
}

// note adds a remark about this machine.
func (b *bench) note(text string) { b.notes = append(b.notes, text) }

func (b *bench) close(f func()) { b.ends = append(b.ends, f) }

func (b *bench) end() {
	for _, f := range slices.Backward(b.ends) {
		f()
	}
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

// A gauge measures a work: it is read before and after.
type gauge struct {
	unit string // of one operation
	now  func() float64
}

var (
	begun = time.Now()

	wall = gauge{"ns", func() float64 { return float64(time.Since(begun)) }}
	// cpu is the time of all processors; threads of other processes count for less there.
	cpu    = gauge{"ns", func() float64 { return float64(cmp.Or(processor.Used(), time.Since(begun))) }}
	allocs = gauge{"allocs", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Mallocs)
	}}
	live = gauge{unit: "bytes"} // of sides that measure themselves
)

// meter is that of the work that runs. A work calls restart after a beginning that does not count, and stop before such an end.
var meter struct {
	now      func() float64
	from, to float64
	stopped  bool
}

func restart() { meter.from = meter.now() }

func stop() {
	if !meter.stopped {
		meter.to, meter.stopped = meter.now(), true
	}
}

// of makes a side of f. The first call finds the number that lasts for the requested time. Later calls do this number, and more if it
// turns out to be too small, because another process had the processor in the first call.
func (g gauge) of(f work, batch int) side {
	if g.now == nil {
		g = wall
	}
	n := 0
	once := func() (value, took float64) {
		start := time.Now()
		meter.now, meter.stopped = g.now, false
		restart()
		f(n)
		stop()
		value = max(1, meter.to-meter.from)
		if g.unit == "ns" {
			return value, value
		}
		return value, float64(time.Since(start))
	}
	return func(d time.Duration) float64 {
		if n == 0 {
			took := 0.0
			for n = 1; ; n *= 2 {
				if _, took = once(); took >= float64(d)/4 {
					break
				}
			}
			n = max(1, int(float64(n)*float64(d)/took))
		}
		value, took := once()
		for range 3 {
			if took >= float64(d)/2 {
				break
			}
			n = min(10*n, int(float64(n)*float64(d)/took)+1)
			value, took = once()
		}
		return value / float64(n*max(1, batch))
	}
}

// both opens the row.
func (r row) both(b *bench) (ours, peer side) {
	if r.sides != nil {
		ours, peer = r.sides(b)
	} else {
		o, p := r.open(b)
		ours = r.gauge.of(o, r.batch)
		if p != nil {
			peer = r.gauge.of(p, r.batch)
		}
	}
	if peer == nil {
		peer = func(time.Duration) float64 { return r.constant }
	}
	return ours, peer
}

// fixed is for sides without a set-up.
func fixed(ours, peer work) func(*bench) (work, work) {
	return func(*bench) (work, work) { return ours, peer }
}

// fresh is for sides that are set up each time.
func fresh(ours, peer func() work) func(*bench) (work, work) {
	return func(*bench) (work, work) { return ours(), peer() }
}

// A failure is the panic of work that could not be done.
type failure struct{ error }

func ok(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T { ok(err); return v }

// leftover is removed at the end of the program.
func leftover(dir string) string {
	leftovers = append(leftovers, dir)
	return dir
}

var leftovers []string

func removeLeftovers() {
	for _, dir := range leftovers {
		_ = os.RemoveAll(dir)
	}
}

// check keeps the work from being optimized away.
func check(ok bool) {
	if !ok {
		panic("bench: wrong result")
	}
}

// caught makes an error of a failure.
func caught(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.error
	default:
		panic(v)
	}
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
	switch {
	case unit == "bytes":
		return fmt.Sprintf("%.1fB", v)
	case unit != "ns":
		return strconv.FormatFloat(v, 'g', 4, 64)
	case v >= 1e9:
		return fmt.Sprintf("%.2fs", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.2fms", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.2fµs", v/1e3)
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
func (x *trial) lap() (err error) {
	begun := time.Now()
	defer caught(&err)
	b := &bench{mode: x.m}
	defer b.end()
	ours, peer := x.both(b)
	x.note = strings.Join(b.notes, "; ")
	left, rounds := x.least-len(x.ratios), max(oneLap, x.least/laps)
	if left > 0 {
		rounds = min(rounds, left)
	}
	interleave([]measurement{x.m.once(ours), x.m.once(peer)}, rounds, x.cold, nil, func(i int, v float64) {
		if i == 0 {
			x.ours = append(x.ours, v)
		} else {
			x.peer = append(x.peer, v)
		}
	})
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
	return result{ID: x.id, Against: x.against, Unit: cmp.Or(x.gauge.unit, wall.unit), Must: x.must, Aim: x.aim, Note: x.note,
		Ours: median(x.ours), Peer: median(x.peer), Ratio: median(x.ratios), Ratios: x.ratios,
		Low: sorted[0], High: sorted[len(sorted)-1], Took: x.took}
}

// measureRows measures all, and calls measured with each as soon as it is done, or has failed.
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

func (m mode) once(s side) measurement {
	return func() float64 { return s(m.Round) }
}

// interleave measures each of sides once per round, beginning with another in each round, and once before unless
// cold, which does not count. Each begins without the garbage of the one before. There are fewer rounds, but one
// at least, if enough says so.
func interleave(sides []measurement, rounds int, cold bool, enough func() bool, got func(i int, v float64)) {
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
			if v := sides[i](); round > 0 {
				got(i, v)
			}
		}
		if round > 0 && enough != nil && enough() {
			return
		}
	}
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

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
	must, aim float64 // bounds of the ratio; a must of 0 means that the row has no verdict
	rounds    int     // 0 means the number of the mode
	cold      bool    // each round is from scratch: there is nothing to warm up
	gauge     gauge   // the default is wall time
	batch     int     // the operations in each of the n of a work; 0 means one
	constant  float64 // the figure of a peer that is not measured
	open      func(b *bench) (ours, peer work)
	sides     func(b *bench) (ours, peer side) // replaces open for sides that measure themselves
}

// A bench is one opening of a row, or of a point of a curve. The set-up by open, and the functions given to close, are not counted.
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

// A mode is the number and the length of the measurements.
type mode struct {
	Rounds int           `json:"rounds"` // the number of measurements of each side
	Round  time.Duration `json:"round"`  // the time of one measurement
	Tiny   bool          `json:"tiny,omitempty"`
}

var (
	quick = mode{Rounds: 24, Round: 24 * time.Millisecond} // rounds are many and short: a shared machine changes its speed within a second
	full  = mode{Rounds: 15, Round: 100 * time.Millisecond}
	tiny  = mode{Rounds: 1, Round: time.Millisecond, Tiny: true} // the tests of the rows use it: nothing is measured
)

// of returns n, or tiny in tests.
func (m mode) of(n, tiny int) int {
	if m.Tiny {
		return tiny
	}
	return n
}

// A gauge measures a work by readings before and after it.
type gauge struct {
	unit string // the unit of an operation's cost
	now  func() float64
}

var (
	begun = time.Now()

	wall = gauge{"ns", func() float64 { return float64(time.Since(begun)) }}
	// cpu is the time of this process on all processors. Other processes disturb it less than wall time.
	cpu    = gauge{"ns", func() float64 { return float64(cmp.Or(processor.Used(), time.Since(begun))) }}
	allocs = gauge{"allocs", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Mallocs)
	}}
	live = gauge{unit: "bytes"} // its sides measure themselves
)

// meter belongs to the work that runs. A work must call restart after a beginning that does not count, and stop before an end that does not
// count.
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

// of makes a side of f. The first call finds the number of operations that lasts for the requested time. Later calls do this number, but
// more if it turns out to be too small: another process may have had the processor in the first call.
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

// both opens the row, and returns its two sides.
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

// leftover notes a directory, so that the end of the program removes it.
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

// check panics if a result is wrong. It uses the result, so that the compiler does not leave the work out.
func check(ok bool) {
	if !ok {
		panic("bench: wrong result")
	}
}

// caught turns the panic of a failure into an error.
func caught(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.error
	default:
		panic(v)
	}
}

// A result has the figures of one row. Ours and Peer are medians. Ratio is the median of the ratios of the rounds. All ratios lie between
// Low and High, but of more than four the least and the greatest are left out.
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

// verdict returns ok or SHORT, or a dash for a row without a must.
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

// A trial is the measurement of a row. It is made in laps. Between two laps all other rows have a lap, so that no row is measured only in a
// bad half minute of the machine. After its least rounds a trial is done, unless the must lies in the confidence interval of the ratio.
// Then the trial goes on until the must lies outside the interval, on either side, or until its further laps reach the time longer.
type trial struct {
	row
	m                  mode
	least              int
	note               string
	ours, peer, ratios []float64 // the figures of each round
	took, extra        time.Duration
}

const (
	laps   = 3
	oneLap = 4 // the least number of rounds, since opening a row takes time
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

// lap opens the row, runs both sides once to warm up, and then some rounds, in which the sides take turns to be the first.
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

// done reports whether the trial needs no more laps.
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

// measureRows measures all rows. It calls measured with each row as soon as the row is done or fails.
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

// interleave measures each side once per round, and begins each round with another side. Unless cold, there is a round before them to warm
// up, which does not count. A collection precedes each measurement, so that no side has to collect the garbage of another. There are fewer
// rounds, but at least one, if enough reports true after a round.
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

// confidence returns the interval in which the true median lies in 19 of 20 cases. It uses ranks, since nothing is known about the
// distribution. The trial looks at the interval after every lap, which makes its limits a little less certain.
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

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

// A work is a function that performs n operations.
type work = func(n int)

// A side is a function that measures once, and returns the cost of one operation.
type side = func() float64

// A row is one comparison: Braid and a peer do the same work.
type row struct {
	id        string
	against   string  // the peer, in a few words
	must, aim float64 // upper bounds for the ratio, required and desired; a must of 0 means that there is no verdict
	rounds    int     // 0 means the default of the mode
	cold      bool    // each round starts from scratch and needs no warm-up
	gauge     *gauge  // the default is wall time
	open      opener
}

// An opener sets up a row, and returns its two sides.
type opener = func(b *bench) (ours, peer side)

// A bench is passed to the functions that set up a row or a point of a curve. The time of the set-up, and of the functions registered with
// the method close, is not counted.
type bench struct {
	mode
	gauge *gauge
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

// runs holds the figures of programs that measure several sides in each run, by the program and the settings of the run.
var runs = map[string][]map[string]float64{}

// kept returns a side that is one figure of a program with several. In each round, the side uses the next run that it has not used yet.
func (b *bench) kept(program string, run func() map[string]float64, figure string) side {
	round := 0
	return func() float64 {
		if round++; len(runs[program]) < round {
			runs[program] = append(runs[program], run())
		}
		v, known := runs[program][round-1][figure]
		if !known {
			ok(fmt.Errorf("%s has no figure %q: %v", program, figure, runs[program][round-1]))
		}
		return v
	}
}

// A mode sets the number and the length of the measurements.
type mode struct {
	Rounds int           `json:"rounds"` // the number of measurements of each side
	Round  time.Duration `json:"round"`  // the time of one measurement
	Tiny   bool          `json:"tiny,omitempty"`
}

var (
	quick = mode{Rounds: 24, Round: 24 * time.Millisecond} // many short rounds, because a shared machine changes its speed within a second
	full  = mode{Rounds: 15, Round: 100 * time.Millisecond}
)

// of returns n, or the argument tiny in tests.
func (m mode) of(n, tiny int) int {
	if m.Tiny {
		return tiny
	}
	return n
}

// A gauge measures a work function by taking readings before and after the call.
type gauge struct {
	unit string // the unit of an operation's cost
	now  func() float64
}

var (
	begun = time.Now()

	wall = &gauge{"ns", func() float64 { return float64(time.Since(begun)) }}
	// cpu is the processor time of this process. Other processes affect processor time less than wall time.
	cpu    = &gauge{"ns", func() float64 { return float64(cmp.Or(processor.Used(), time.Since(begun))) }}
	allocs = &gauge{"allocs", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.Mallocs)
	}}
	live = &gauge{unit: "bytes"} // the sides measure themselves
)

// meter holds the readings for the current work function. The function calls restart if its work before the call must not be counted, and
// stop if its work after the call must not be counted.
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

// of returns a side that measures f for about d. Each of the n repetitions of f has batch operations. The first call of the side finds the
// number of operations that takes this time. Later calls perform this number of operations, but increase it if it is too small, because
// another process may have disturbed the first call.
func (g *gauge) of(f work, batch int, d time.Duration) side {
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
	return func() float64 {
		if n == 0 {
			took := 0.0
			for n = 1; took < float64(d)/4; n *= 2 {
				_, took = once()
			}
			n = max(1, int(float64(n/2)*float64(d)/took))
		}
		value, took := once()
		for more := 3; more > 0 && took < float64(d)/2; more-- {
			n = min(10*n, int(float64(n)*float64(d)/took)+1)
			value, took = once()
		}
		return value / float64(n*batch)
	}
}

// works returns sides that measure two works with the gauge of the row. Each of the n repetitions of a work has batch operations.
func (b *bench) works(ours, peer work, batch int) (side, side) {
	return b.gauge.of(ours, batch, b.Round), b.gauge.of(peer, batch, b.Round)
}

// fixed returns an opener for works that need no set-up.
func fixed(ours, peer work) opener {
	return func(b *bench) (side, side) { return b.works(ours, peer, 1) }
}

// fresh returns an opener that sets up both sides at each opening. The function run makes a work of what a side has set up.
func fresh[T any](run func(T) work, ours, peer func() T) opener {
	return func(b *bench) (side, side) { return b.works(run(ours()), run(peer()), 1) }
}

// within returns an opener that compares a work with a cost that is not measured.
func within(cost float64, ours work) opener {
	return func(b *bench) (side, side) { return b.gauge.of(ours, 1, b.Round), func() float64 { return cost } }
}

// A failure is the panic value of work that could not be done.
type failure struct{ error }

func ok(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](v T, err error) T { ok(err); return v }

var scratchDir string

// scratch returns a new directory. The end of the program removes it, together with scratchDir.
func scratch() string {
	if scratchDir == "" {
		scratchDir = must(os.MkdirTemp("", "bench"))
	}
	return must(os.MkdirTemp(scratchDir, ""))
}

// check panics if a result is wrong. The check also prevents the compiler from eliminating the work.
func check(ok bool) {
	if !ok {
		panic("bench: wrong result")
	}
}

// caught recovers a panic whose value is a failure, and stores the error of the failure in *err.
func caught(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.error
	default:
		panic(v)
	}
}

// A result holds the figures of one row. Ours and Peer are medians, and Ratio is the median of the ratios of all rounds. Low and High are
// the smallest and the largest ratio. If there are more than four ratios, Low and High leave out the two extremes.
type result struct {
	ID      string    `json:"id"`
	Against string    `json:"against"`
	Unit    string    `json:"unit"`
	Ours    float64   `json:"ours"`
	Peer    float64   `json:"peer"`
	Ratio   float64   `json:"ratio"`
	Low     float64   `json:"low"`
	High    float64   `json:"high"`
	Must    float64   `json:"must,omitempty"`
	Aim     float64   `json:"aim,omitempty"`
	Note    string    `json:"note,omitempty"`
	Ratios  []float64 `json:"ratios"`
}

// Verdict returns "ok" or "SHORT", or a dash for a row without a must.
func (r result) Verdict() string {
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
		r.ID, show(r.Ours, r.Unit), show(r.Peer, r.Unit), r.Ratio, r.Low, r.High, bound(r.Must), bound(r.Aim), r.Verdict())
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

// A trial is the measurement of a row, in several laps. Between two laps of a row, all other rows run a lap, so that a slow half minute of
// the machine does not affect all laps of one row. A trial has at least the number of rounds in the field least. It then continues while
// the must lies in the confidence interval of the ratio, until the additional laps have taken the time in the constant longer.
type trial struct {
	row
	m                  mode
	least              int
	note               string
	ours, peer, ratios []float64 // the costs and the ratio of each round
	extra              time.Duration
}

const (
	laps   = 3
	oneLap = 4 // the minimum number of rounds per lap, because opening a row takes time
	longer = 10 * time.Second
)

func newTrial(r row, m mode) *trial {
	x := &trial{row: r, m: m, least: cmp.Or(r.rounds, m.Rounds)}
	switch {
	case m.Tiny:
		x.least = 1
	case r.rounds == 0 && r.must == 0: // rows without a must need fewer rounds
		x.least /= 2
	}
	return x
}

// lap sets up the row, runs both sides once to warm up, and then runs several rounds. The sides alternate in running first.
func (x *trial) lap() (err error) {
	defer caught(&err)
	begun, b := time.Now(), &bench{mode: x.m, gauge: cmp.Or(x.gauge, wall)}
	defer b.end()
	ours, peer := x.open(b)
	x.note = strings.Join(b.notes, "; ")
	left, rounds := x.least-len(x.ratios), max(oneLap, x.least/laps)
	if left > 0 {
		rounds = min(rounds, left)
	}
	costs := interleave([]side{ours, peer}, rounds, x.cold, nil)
	x.ours, x.peer = append(x.ours, costs[0]...), append(x.peer, costs[1]...)
	for i := range costs[0] {
		x.ratios = append(x.ratios, costs[0][i]/costs[1][i])
	}
	if left <= 0 {
		x.extra += time.Since(begun)
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
	return result{ID: x.id, Against: x.against, Unit: cmp.Or(x.gauge, wall).unit, Must: x.must, Aim: x.aim, Note: x.note,
		Ours: median(x.ours), Peer: median(x.peer), Ratio: median(x.ratios), Ratios: x.ratios,
		Low: sorted[0], High: sorted[len(sorted)-1]}
}

// measureRows measures all rows. It calls the function measured for each row when the row is finished or has failed.
func measureRows(all []row, m mode, measured func(res result, err error)) {
	var left []*trial
	for _, r := range all {
		left = append(left, newTrial(r, m))
	}
	for len(left) > 0 {
		left = slices.DeleteFunc(left, func(x *trial) bool {
			if err := x.lap(); err != nil {
				measured(result{ID: x.id}, err)
				return true
			}
			done := x.done()
			if done {
				measured(x.result(), nil)
			}
			return done
		})
	}
}

// interleave measures each side once per round, begins each round with a different side, and returns the costs by side. Unless cold is
// true, an additional first round warms up the sides and is not counted. A garbage collection precedes each measurement, so that no side
// collects another side's garbage. If the function enough returns true after a round, interleave returns early.
func interleave(sides []side, rounds int, cold bool, enough func() bool) [][]float64 {
	round, costs := 0, make([][]float64, len(sides))
	if cold {
		round = 1
	}
	for ; round <= rounds; round++ {
		for k := range sides {
			i := (k + round) % len(sides)
			if sides[i] == nil {
				continue
			}
			runtime.GC()
			if v := sides[i](); round > 0 {
				costs[i] = append(costs[i], v)
			}
		}
		if round > 0 && enough != nil && enough() {
			break
		}
	}
	return costs
}

// confidence returns the 95 % confidence interval of the median. It uses ranks, because the distribution is unknown. Because a trial
// computes the interval after every lap, the real confidence is a little lower.
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

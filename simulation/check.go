package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/simulation/internal/seeds"
)

// A Nondeterminism describes where two runs of one seed first differed.
type Nondeterminism struct {
	Seed          uint64
	Step          int           // the number of steps that both runs had taken
	At            time.Duration // the virtual time of the difference
	Task          string        // the task that was running; empty for a timer, a segment or a callback
	Before        []string      // the last events before the difference, which are the same in both runs
	First, Second string        // the event of each run that differed, with its time
}

func (e *Nondeterminism) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "simulation: seed %d is not deterministic. Two runs did the same up to step %d, %v:\n", e.Seed, e.Step, e.At)
	for _, line := range e.Before {
		fmt.Fprintf(&b, "\t%s\n", line)
	}
	fmt.Fprintf(&b, "Then in the first run:\n\t%s\nand in the second:\n\t%s\n", e.First, e.Second)
	if e.Task != "" {
		fmt.Fprintf(&b, "Look at what %s did before this event, since its last wait. ", e.Task)
	}
	return b.String() + `Usual causes, and what to write instead:
	a range over a map          slices.Sorted(maps.Keys(m))
	math/rand                   World.Rand
	time.Now, stock timers      suspend.Now, suspend.Sleep, suspend.AfterFunc, cancel.WithTimeout
	a native select, go, chan   suspend.Select, the Go method of World and Node, chanx
	crypto/rand                 testing/cryptotest.SetGlobalRandom`
}

// Check runs main twice with one seed. It returns a *Nondeterminism if the events of the two runs differ, or if the first lines of their
// errors differ. Otherwise it returns the error of the run, as Run reports it. In a bubble, use Test instead.
func Check(main func(ctx context.Context, w *World) error, o Options) error {
	if o.Bubble {
		return errors.New("simulation: Check called in a bubble, whose clock continues between the two runs: use simulation.Test with Bubble")
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	c := checker{run: func(o Options) Report { return runApart(o, main) }}
	return c.check(o)
}

// A checker runs a seed twice. It records the events of the first run, and compares each event of the second run with the recorded event.
type checker struct {
	run    func(Options) Report
	events []event
	report Report // the first run's report
	long   int    // the number of long windows in both runs
	tries  int    // the number of repeated checks
}

// atMost limits the number of checks of a seed. A check is repeated if its two runs differ, and at least one run had a window in which the
// machine may have decided an order.
const atMost = 5

// check runs the seed twice, and returns the run's error, or the difference between the two runs.
func (c *checker) check(o Options) (err error) {
	for try := range atMost {
		c.tries += min(try, 1)
		var differs *Nondeterminism
		if err = c.twice(o); c.long == 0 || !errors.As(err, &differs) {
			break
		}
		o.Trace = nil
	}
	return err
}

// perform performs a run, with a new record. The record remains if the run hangs or panics.
func (c *checker) perform(o Options) Report {
	o.record = seeds.NewRecord(o.run, o.how)
	r := c.run(o)
	r.record = o.record
	return r
}

// record performs the first run, and records its events.
func (c *checker) record(o Options) {
	c.events = c.events[:0]
	o.watch = func(_ *World, e event) { c.events = append(c.events, e) }
	c.report = c.perform(o)
	c.long = c.report.Long
}

func (c *checker) twice(o Options) error {
	c.record(o)
	if errors.Is(c.report.Err, ErrForeign) || unending(c.report.Err) {
		return c.report.Err
	}
	at := 0
	var differs *Nondeterminism
	o.Trace, o.how.Stop = nil, 0
	o.watch = func(w *World, e event) {
		if differs != nil {
			return
		}
		if at < len(c.events) && c.events[at].same(e) {
			at++
			return
		}
		differs = c.differs(w, at, e.String())
		w.fail(differs)
	}
	second := c.perform(o)
	c.long += second.Long
	switch {
	case errors.Is(second.Err, ErrForeign) || unending(second.Err):
		return second.Err
	case differs != nil:
		return differs
	case at < len(c.events):
		e := c.events[at]
		return &Nondeterminism{Seed: o.Seed, Step: second.Steps, At: e.at, Task: e.who(), Before: c.before(at), First: e.String(), Second: seeds.Ending(second.Err)}
	case seeds.Verdict(second.Err) != seeds.Verdict(c.report.Err):
		return &Nondeterminism{Seed: o.Seed, Step: second.Steps, At: second.Elapsed, Before: c.before(at), First: seeds.Ending(c.report.Err), Second: seeds.Ending(second.Err)}
	}
	return c.report.Err
}

// runApart calls Run on a new goroutine. So a callback that calls runtime.Goexit does not end the caller of runApart, and a task that waits
// natively for too long does not block the caller.
func runApart(o Options, main func(ctx context.Context, w *World) error) Report {
	if o.fleet == nil {
		o.fleet = newFleet(o)
		defer o.fleet.stop()
	}
	done := make(chan Report, 1)
	go func() {
		r := Report{Seed: o.Seed, Err: errExited}
		defer func() {
			if r.Err == errExited {
				r.Err = exit()
			}
			done <- r
		}()
		r = Run(main, o)
	}()
	select {
	case r := <-done:
		return r
	case err := <-o.fleet.hangs:
		o.fleet.hung = done
		return Report{Seed: o.Seed, Err: err}
	}
}

// inBubbleOf calls runApart in a new bubble. A bubble panics if goroutines remain in it, or if all its goroutines wait natively. The panic
// must become an error of the run, otherwise the seed would be lost.
func inBubbleOf(t *testing.T, o Options, main func(ctx context.Context, w *World) error) (r Report) {
	r = Report{Seed: o.Seed}
	bubble := ""
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		var left strings.Builder
		for _, trace := range gid.Stacks() {
			head, _, _ := bytes.Cut(trace, []byte{'\n'})
			if bubble != "" && bytes.Contains(head, []byte(bubble)) && !bytes.Contains(head, []byte("[coroutine")) {
				fmt.Fprintf(&left, "\n\na goroutine of the bubble:\n%s", frame(frames(trace)))
			}
		}
		r.Err = errors.Join(r.Err, fmt.Errorf("%v%s", v, left.String()))
	}()
	synctest.Test(t, func(*testing.T) {
		bubble = bubbleOf()
		r = runApart(o, main)
	})
	return r
}

// unending reports whether a run that ended with err makes it impossible to run the seed again in this process: a goroutine of the run is
// still running, and would disturb the second run.
func unending(err error) bool {
	return errors.Is(err, ErrBusy) || errors.Is(err, errNative)
}

// differs describes a difference: in place of the at'th event of the first run, the second run had the event that the string second
// describes.
func (c *checker) differs(w *World, at int, second string) *Nondeterminism {
	first := seeds.Ending(c.report.Err)
	if at < len(c.events) {
		first = c.events[at].String()
	}
	d := &Nondeterminism{Seed: w.o.Seed, Step: w.steps, At: w.clock.now, Before: c.before(at), First: first, Second: second}
	if t := w.current; t != nil {
		d.Task = taskName(&t.host.place, t.id)
	}
	return d
}

// before returns the trace lines of the last five events before the at'th event.
func (c *checker) before(at int) []string { return traceLines(lastTraced(c.events[:at], 5)) }

// lastTraced returns the last n events that appear in the trace.
func lastTraced(events []event, n int) (some []event) {
	for i := len(events) - 1; i >= 0 && len(some) < n; i-- {
		if !events[i].quiet {
			some = append(some, events[i])
		}
	}
	slices.Reverse(some)
	return some
}

func traceLines(events []event) (all []string) {
	for _, e := range events {
		all = append(all, e.String())
	}
	return all
}

// same reports whether e and f, which come from two different Worlds, are the same event.
func (e event) same(f event) bool {
	if e.host.number() != f.host.number() || e.of.number() != f.of.number() {
		return false
	}
	e.host, e.of, e.message, f.host, f.of, f.message = nil, nil, nil, nil, nil, nil
	return e == f
}

func (e event) who() string {
	if e.host == nil || e.task == 0 {
		return ""
	}
	return taskName(e.host, e.task)
}

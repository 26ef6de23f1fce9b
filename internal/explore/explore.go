// Package explore runs a small concurrent program in every way in which its tasks can take turns, and in which their
// contexts can be cancelled: stateless depth-first search, in which a run is a list of choices, and the next run repeats
// all of them but the last.
//
// The tasks are coroutines, bound as a scheduler binds its own, so what they wait for through package suspend is the
// same code as anywhere else. They take turns where they suspend and where they yield; built with the tag explore, and
// asked to be fine, also before each access to a value or a lock of package atomicx. A run that does nothing but
// sequentially consistent accesses is then like one on real processors; a data race is not noticed, see go test -race.
//
// Literature: Godefroid, Model checking for programming languages using VeriSoft (POPL 1997), for the search without
// stored states; Musuvathi and Qadeer, Iterative context bounding for systematic testing of multithreaded programs
// (PLDI 2007), for the bound on preemptions, and Fair stateless model checking (PLDI 2008), for what becomes of a task that
// yields, which here has to wait for one step of each of the others only.
package explore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Unlimited is no bound.
const Unlimited = -1

// A Config says how much there is to explore.
type Config struct {
	Fine          bool   // take turns before each access as well; needs the tag explore
	Preemptions   int    // how often, in a run, a task that could go on is made to wait; Unlimited if it is negative
	Cancellations int    // how many contexts are cancelled in a run, unless all wait; Unlimited if it is negative
	Steps         int    // turns in a run, more being taken for a livelock; 0: 10000
	Executions    int    // runs after which to give up; 0: no limit
	Replay        string // the one run to make, as a Failure names it
}

// A Result says what was found.
type Result struct {
	Executions int
	Exhausted  bool // there are no others, within the bounds on preemptions and cancellations
	Failure    *Failure
}

// A Failure is a run that went wrong.
type Failure struct {
	Reason string
	Trace  []string // what happened, in order
	Replay string   // for Config.Replay
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\t%s\nreplay: %s", f.Reason, strings.Join(f.Trace, "\n\t"), f.Replay)
}

// A choice is one that was made in a run: the nth of so many.
type choice struct{ nth, of int }

// An explorer is one Run.
type explorer struct {
	Config
	path    []choice
	workers []*worker
	tracing bool
	face
}

// Run calls program, which starts the tasks of a World, again and again until all is explored or a run has failed.
func Run(c Config, program func(w *World)) Result {
	if c.Steps == 0 {
		c.Steps = 10_000
	}
	e := &explorer{Config: c}
	defer e.stop()
	if c.Replay != "" {
		if err := e.parse(c.Replay); err != nil {
			return Result{Failure: &Failure{Reason: err.Error(), Replay: c.Replay}}
		}
	}
	defer e.trace(c.Fine)()
	var r Result
	for {
		r.Executions++
		w := e.run(program)
		if w.failure != "" {
			r.Failure = &Failure{Reason: w.failure, Replay: e.format()}
			e.tracing = true
			again := e.run(program)
			r.Failure.Trace = again.trace
			if again.failure != w.failure {
				r.Failure.Reason += "\n(and not when it was run again, with " + strconv.Quote(again.failure) + ": the program depends on something else)"
			}
			return r
		}
		if c.Replay != "" {
			return r
		}
		if !e.next() {
			r.Exhausted = true
			return r
		}
		if r.Executions == c.Executions {
			return r
		}
	}
}

// next makes path that of the next run, and reports whether there is one.
func (e *explorer) next() bool {
	for i := len(e.path) - 1; i >= 0; i-- {
		if e.path[i].nth+1 < e.path[i].of {
			e.path[i].nth++
			e.path = e.path[:i+1]
			return true
		}
	}
	return false
}

// choose makes the next choice of a run.
func (w *World) choose(of int) int {
	if of == 1 {
		return 0
	}
	e, i := w.e, w.made
	w.made++
	if i == len(e.path) {
		e.path = append(e.path, choice{0, of})
		return 0
	}
	c := &e.path[i]
	if c.of == 0 {
		c.of = of
	}
	if c.of != of || c.nth >= of {
		w.fail("not the same choices as before: the program depends on something else, such as the time, a random number or another goroutine")
		return 0
	}
	return c.nth
}

const digits = "0123456789abcdefghijklmnopqrstuvwxyz"

// format writes the choices that were made, and the bounds under which they were: 2.*.0103, without what is 0 at the end.
func (e *explorer) format() string {
	var s strings.Builder
	for _, n := range []int{e.Preemptions, e.Cancellations} {
		if n < 0 {
			s.WriteString("*.")
		} else {
			fmt.Fprintf(&s, "%d.", n)
		}
	}
	end := len(e.path)
	for end > 0 && e.path[end-1].nth == 0 {
		end--
	}
	for _, c := range e.path[:end] {
		s.WriteByte(digits[c.nth])
	}
	return s.String()
}

var errReplay = errors.New("explore: not a replay string")

func (e *explorer) parse(replay string) error {
	parts := strings.Split(replay, ".")
	if len(parts) != 3 {
		return errReplay
	}
	for i, bound := range []*int{&e.Preemptions, &e.Cancellations} {
		if *bound = Unlimited; parts[i] != "*" {
			n, err := strconv.ParseUint(parts[i], 10, 31)
			if err != nil {
				return errReplay
			}
			*bound = int(n)
		}
	}
	for _, d := range []byte(parts[2]) {
		nth := strings.IndexByte(digits, d)
		if nth < 0 {
			return errReplay
		}
		e.path = append(e.path, choice{nth: nth})
	}
	return nil
}

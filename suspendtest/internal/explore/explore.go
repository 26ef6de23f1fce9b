// Package explore runs a small concurrent program in every order in which its tasks can take turns and their contexts can be cancelled.
// It is a stateless depth-first search. A run is a list of choices, and the next run repeats all of them but the last.
//
// The tasks are coroutines, bound as a scheduler binds its own. So a wait through package suspend runs the same code as anywhere else. The
// tasks take turns where they suspend and where they yield. In a build with the tag explore, and with Config.Fine, they also take turns
// before each access to a value or a lock of package atomicx. Such a run is like a run on real processors in which all accesses are
// sequentially consistent. A data race is not noticed: see go test -race.
//
// There are two searches. One bounds the number of times that a runnable task is made to wait. The other has no such bound, and makes one of
// the runs that differ only in the order of accesses that commute; see reduction.
//
// Literature: Godefroid, Model checking for programming languages using VeriSoft (POPL 1997), for the search without stored states;
// Musuvathi and Qadeer, Iterative context bounding for systematic testing of multithreaded programs (PLDI 2007), for the bound on
// preemptions, and Fair stateless model checking (PLDI 2008), for tasks that yield. There a task may yield once before all other tasks must
// have made a step, and here Config.Yields times.
package explore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// Unlimited is no bound. Never, as a bound on Cancellations, leaves the contexts of tasks alone even when all wait.
const (
	Unlimited = -1
	Never     = -2
)

// A Config says how much there is to explore.
type Config struct {
	Fine bool // tasks also take turns before each access; needs the tag explore

	// Reduced says to make one of the runs that differ in nothing but the order of accesses that commute, and takes no bound on
	// preemptions. It needs Fine. What tasks share must be values of package atomicx then, or be used under locks only, and no task may
	// wait for a change by yielding in a loop.
	Reduced bool

	// Points says to take turns also where an operation of a primitive begins, even if it need not wait: where package suspend calls
	// Preempt, and at each suspend.Point. It is not for Fine, where each access is such a place.
	Points bool

	// Asleep says that the timer of a suspend.Sleep fires when its task waits, and no earlier. Package suspend makes no difference between the
	// two; its own programs, which have timers that fire at any time, check that. Whether the task goes on early or late is open in any
	// case, whatever the durations: so each order of the tasks that sleep is still made. A Sleep that cannot be cancelled is like a Yield then.
	Asleep bool

	// Depth says, unless it is 0, to make Executions runs at random in place of all. Each task has a random priority, and the highest of
	// all tasks that can run has its turn. At Depth-1 random turns, that task falls below all others. Preemptions has no effect then.
	Depth int

	Preemptions   int           // how often, in a run, a task that could go on must wait or, with Points, is cancelled; negative means Unlimited
	Cancellations int           // how many contexts are cancelled in a run, unless all wait; Unlimited if it is negative
	Yields        int           // how often a task may go on after a Yield while another that could run does not; none if Fine
	Spurious      int           // how often, in a run, each task's Park returns for no reason
	Steps         int           // turns in a run, more being taken for a livelock; 0 means 10000
	Executions    int           // runs after which to give up; 0 means no limit
	Stall         time.Duration // how long a task may wait natively; 0 means 5 s
	Shorter       int           // runs after a failure that look for a shorter one with the same reason
	Replay        string        // names the only run to make, as a Failure does

	// For tests: Reduced, but without reducing anything, and maybe at random.
	brute  bool
	random *rand.Rand

	tracing bool
	looks   preempt.Kinds // a release of objects of these kinds is a point
}

// A Failure is a run that went wrong.
type Failure struct {
	Reason string
	Trace  []string // the events in order, under the names of the tasks
	Replay string   // the string for Config.Replay
	Stacks string   // stacks of the tasks, if a task waits natively
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\t%s\nreplay: %s%s", f.Reason, strings.Join(f.Trace, "\n\t"), f.Replay, f.Stacks)
}

// An explorer is one Run.
type explorer struct {
	Config
	search
	workers []*worker
	level   int // all runs with so many preemptions are made
	cut     Cut
	failure *Result // the shortest so far
	looked  preempt.Kinds
	face

	runs  int
	world *World // the last run
	gid   int64
	turn  atomic.Int64 // the goroutine whose turn it is
	steps atomic.Int64 // steps of all runs; negative once the search is given up
}

// A search chooses the runs. It is bounded or a reduction.
type search interface {
	begin(w *World)
	add(parent, t *task) // adds t to the tasks of the run

	// pick chooses whose turn is next, nil if the run is over. last is the task that is at a point where it can be made to wait. It is nil
	// if the task cannot go on by itself, or gives its turn away.
	pick(last *task) *task

	choose(of int) int // chooses between other things than tasks
	choices() (made []choice, preemptions int)
	replay(made []choice) // sets the first choices
	next() bool           // prepares for the next run, and reports whether there is one
}

// Run calls program, which starts the tasks of a World, again and again until all is explored or a run has failed.
func Run(c Config, program func(w *World)) Result {
	if c.Steps == 0 {
		c.Steps = 10_000
	}
	if c.Stall == 0 {
		c.Stall = 5 * time.Second
	}
	e := &explorer{Config: c, level: Never}
	var path []choice
	if c.Replay != "" {
		var err error
		if path, err = e.parse(c.Replay); err == nil && e.Reduced && !c.Fine {
			err = errReplay // the string is of another exploration
		}
		if err != nil {
			return Result{Failure: &Failure{Reason: err.Error(), Replay: c.Replay}}
		}
	}
	if e.Reduced {
		if !c.Fine {
			panic("explore: Reduced is for Fine only")
		}
		e.search = newReduction(e)
	} else {
		b := &bounded{e: e}
		if c.Depth > 0 && c.Replay == "" {
			e.Preemptions, b.pct = Unlimited, new(pct)
		}
		e.search = b
	}
	e.search.replay(path)
	defer e.trace(c.Fine)()
	defer preempt.Watch(watcher{e})()
	r := e.watch(func() Result { defer e.stop(); return e.all(program) })
	if r.Failure == nil && e.looked&^e.looks != 0 && c.Replay == "" {
		c.looks |= e.looked
		return Run(c, program)
	}
	if f := r.Failure; f != nil && !c.tracing {
		c.Replay, c.tracing, c.random = f.Replay, true, nil
		again := Run(c, program).Failure
		if again == nil {
			again = new(Failure)
		}
		if f.Trace = again.Trace; again.Reason != f.Reason {
			f.Reason += "\n(and not when it was run again, with " + strconv.Quote(again.Reason) + ": the program depends on something else)"
		}
	}
	if r.Preemptions, r.Cut = e.level, e.cut; r.Exhausted && !r.Cut.Preemptions {
		r.Preemptions = Unlimited
	}
	return r
}

// all is Run, once the search is chosen.
func (e *explorer) all(program func(w *World)) (r Result) {
	least, failed := 0, 0
	for {
		w := e.run(program)
		if f := r.Failure; w.failure != "" && (f == nil || w.failure == f.Reason && w.steps < least) {
			r.Executions, least = e.runs, w.steps
			r.Failure = &Failure{Reason: w.failure, Trace: w.story(), Replay: e.format()}
			e.failure = &r
		}
		if r.Failure != nil {
			if failed++; failed > e.Shorter || least > e.Steps || e.Replay != "" || e.runs == e.Executions || !e.next() {
				return r
			}
			continue
		}
		r.Executions = e.runs
		if w.redundant {
			r.Blocked++
		}
		if e.Replay != "" || e.looked&^e.looks != 0 { // Run begins anew if the program looks at further kinds
			return r
		}
		if !e.next() {
			r.Exhausted = true
			return r
		}
		if e.runs == e.Executions {
			return r
		}
	}
}

// Package explore runs a small concurrent program in every order in which its tasks can take turns and their contexts can be cancelled.
// The search is depth-first and stores no states. A run is determined by its choices, and the next run changes the last choice that has
// an untried option.
//
// The tasks are coroutines that are bound with suspend.Bind, like the tasks of any scheduler. A wait in package suspend therefore runs
// the same code as elsewhere. The tasks take turns where they suspend and where they yield. In a build with the tag explore, and with
// Config.Fine, they also take turns before each access to a value or a lock of package atomicx. Such a run is equivalent to a run on real
// processors in which all accesses are sequentially consistent. The search does not detect data races, but go test -race does.
//
// There are two searches. The type bounded limits the number of preemptions. A preemption makes a runnable task wait. The type reduction
// has no such limit. It executes one run from each class of runs that differ only in the order of accesses that commute.
//
// Literature: Godefroid, Model checking for programming languages using VeriSoft (POPL 1997), for the search without stored states;
// Musuvathi and Qadeer, Iterative context bounding for systematic testing of multithreaded programs (PLDI 2007), for the bound on
// preemptions, and Fair stateless model checking (PLDI 2008), for tasks that yield. In the last paper, a task that yields must wait until
// every other runnable task has taken a step. Here a task can skip this wait Config.Yields times.
package explore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// Unlimited means that there is no bound. Never, as the value of Config.Cancellations, means that the search cancels no task's context,
// even when all tasks wait.
const (
	Unlimited = -1
	Never     = -2
)

// A Config sets the kind and the bounds of a search.
type Config struct {
	Fine bool // tasks also take turns before each access; requires the build tag explore

	// Reduced selects the search that executes one run from each class of runs that differ only in the order of accesses that commute. This
	// search ignores Preemptions and requires Fine. All data that tasks share must then be values of package atomicx, or be used only under
	// locks. In a loop that waits for a change, a task makes at most Yields rounds, but at least two, before what it reads changes, or no other
	// task can take a step.
	Reduced bool

	// With Points, tasks also take turns where an operation of a primitive begins, even if the operation need not wait. These places are
	// the calls of the task's Preempt and of suspend.Point. Points is not needed with Fine, where tasks take turns before each access.
	Points bool

	// With Asleep, the timer of a suspend.Sleep fires only after its task has begun to wait. Otherwise timers fire at any time. Package
	// suspend does not distinguish the two cases, and programs that are explored without Asleep check this. Durations do not limit when a
	// task wakes, so every order in which sleeping tasks can wake is still explored. With Asleep, a Sleep that cannot be cancelled acts
	// like a Yield.
	Asleep bool

	// If Depth is not 0, the search executes random runs instead of all runs; Executions is their number. Each task has a random priority,
	// and the runnable task with the highest priority has the next turn. At Depth-1 random turns, the priority of this task is first
	// lowered below all other priorities. The field Preemptions is then ignored.
	Depth int

	Preemptions   int           // the maximum in a run; with Points, a cancellation at a point also counts; negative means Unlimited
	Cancellations int           // the maximum in a run, not counting those while all tasks wait; negative, except Never, means Unlimited
	Yields        int           // how many times a task may yield while another task stays runnable; 0 if Fine, but see Reduced
	Spurious      int           // the maximum number of spurious returns from each task's Park in a run
	Steps         int           // the maximum number of turns in a run; a longer run fails as a livelock; 0 means 10000
	Executions    int           // the maximum number of runs; 0 means no limit
	Stall         time.Duration // how long a task may block its goroutine before the run fails; 0 means 5 s
	Busy          time.Duration // how long a task may compute before the run fails; 0 means 30 s
	Shorter       int           // the number of runs, after a failure, that look for a shorter run with the same failure
	Replay        string        // the replay string of the only run to execute; see Failure.Replay

	// The fields brute and random are for tests. With Reduced, brute makes the search explore all orders, and random makes it choose
	// random runs.
	brute  bool
	random *rand.Rand

	tracing bool
	looks   preempt.Kinds // the release of an object of these kinds is a scheduling point
}

// A Failure describes a run that failed.
type Failure struct {
	Reason string
	Trace  []string // the events in order, in a column for each task
	Replay string   // the string for Config.Replay
	Stacks string   // the tasks' stacks, if the run failed because a task waits natively
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\t%s\nreplay: %s%s", f.Reason, strings.Join(f.Trace, "\n\t"), f.Replay, f.Stacks)
}

// An explorer holds the state of one call of Run.
type explorer struct {
	Config
	search
	workers []*worker
	level   int // all runs with up to this many preemptions have been executed
	cut     Cut
	failure *Result // the shortest failure so far
	looked  preempt.Kinds
	atomics bool // see Result.Atomics
	face

	runs  int
	world *World // the current run
	gid   int64
	turn  atomic.Int64 // the ID of the goroutine whose turn it is
	steps atomic.Int64 // the number of steps in all runs; negative after the search was given up
}

// A search decides which runs are executed. The types bounded and reduction implement it.
type search interface {
	beginRun(w *World)
	add(parent, t *task) // adds t, a task started by parent, to the run; parent is nil for the program

	// pick returns the task that has the next turn, or nil if the run has ended. The parameter last is the task that has just reached a
	// scheduling point, or nil if the task with the last turn waits, yields or has ended.
	pick(last *task) *task

	choose(of int) int // returns a number less than the argument, for a choice that is not between tasks
	choices() (made []choice, preemptions int)
	replay(made []choice) // sets the first choices of the next run
	nextRun() bool        // prepares the next run, and reports whether there is another run
}

// countStep is called at each step, by the goroutine that takes the step. If runWatched has given up the search, countStep never returns, so that no
// further step is taken.
func (e *explorer) countStep() {
	if e.steps.Add(1) < 0 {
		select {}
	}
}

// A choice selects one option. Its numbers are the index of the option, the number of options, and how many options at the beginning are
// not preemptions.
type choice struct{ nth, of, free int }

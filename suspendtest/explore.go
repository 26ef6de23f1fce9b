package suspendtest

import (
	"context"
	"os"
	"testing"

	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// ReplayVariable is the environment variable for a replay string, with which Explore makes one run only.
const ReplayVariable = "BRAID_REPLAY"

// A World is one run of the program that Explore explores.
type World struct{ w *explore.World }

// Go starts a task. In some of the runs its ctx is cancelled, at each point where that can matter; so f is to pass it on
// where it may be, and context.Background() where the program depends on f's success.
func (w *World) Go(name string, f func(ctx context.Context)) { w.w.Go(name, f) }

// Deadline returns a context whose deadline may pass at any point where that can matter.
func (w *World) Deadline() context.Context { return w.w.Deadline() }

// Check registers f to be called at the end of each run, when all tasks have ended. An error is a failure.
func (w *World) Check(f func() error) { w.w.Check(f) }

// OnIdle registers f to be called with the names of the live tasks whenever all of them wait. An error is a failure. A lost wake-up shows
// here, even if the waiting task could still be cancelled.
func (w *World) OnIdle(f func(waiting []string) error) { w.w.OnIdle(f) }

// Log adds a line to the trace of the run, which a failure prints.
func (w *World) Log(format string, args ...any) { w.w.Log(format, args...) }

// Called marks the beginning of an operation whose order among others counts, and Returned its end. Package suspendtest/linear calls both.
// With Accesses, other tasks can take turns at each of the two calls.
func (w *World) Called() { w.w.Called() }

// Returned marks the end of an operation, see Called.
func (w *World) Returned() { w.w.Returned() }

// An ExploreOption changes what Explore does.
type ExploreOption func(*exploreConfig)

type exploreConfig struct {
	explore.Config
	untilCancelled bool
}

// Cancellations bounds the number of contexts that are cancelled in one run. There is no bound otherwise.
func Cancellations(n int) ExploreOption {
	return func(c *exploreConfig) { c.Cancellations = max(n, 0) }
}

// UntilCancelled says that tasks may wait until their contexts are cancelled. Otherwise Explore tries all orders without a cancellation
// first, and a task that then waits without end is an error: a later cancellation would hide that its wake-up was lost.
func UntilCancelled() ExploreOption { return func(c *exploreConfig) { c.untilCancelled = true } }

// Preemptions has Explore make all runs with at most n preemptions: turns that a task loses, or a cancellation, where the task need not wait.
// Otherwise it makes all without one, then all with one, and so on, until there are no others or 20,000 runs are made.
func Preemptions(n int) ExploreOption { return func(c *exploreConfig) { c.Preemptions = max(n, 0) } }

// Yields bounds how often a task goes on after a Yield while another task, which could run, does not. Otherwise a loop that yields until
// something changes would have endless runs. A Sleep that cannot be cancelled counts as a Yield. The default is 2.
func Yields(n int) ExploreOption { return func(c *exploreConfig) { c.Yields = max(n, 0) } }

// Waits says that tasks take turns only where they wait, yield or end, and not where an operation begins that need not wait. There are far
// fewer runs then. It also serves programs that hold a lock of package sync while they use a primitive.
func Waits() ExploreOption { return func(c *exploreConfig) { c.Points = false } }

// Spurious lets the Park of each task return for no reason, up to n times in a run, as a scheduler's Park may. The default is 0.
func Spurious(n int) ExploreOption { return func(c *exploreConfig) { c.Spurious = n } }

// Steps bounds the turns that tasks take in one run. A run with more turns fails as a livelock. The default is 10000.
func Steps(n int) ExploreOption { return func(c *exploreConfig) { c.Steps = n } }

// Executions bounds the number of runs, first of the runs without a cancellation, then of all runs. The default is 20,000, but no bound
// with Preemptions or Accesses.
func Executions(n int) ExploreOption { return func(c *exploreConfig) { c.Executions = n } }

// Random makes n random runs, and n without a cancellation, of a program that has too many runs to make all. Each task, and each context
// that can be cancelled, has a random priority; the highest of all that can go on has its turn. A Sleep that cannot be cancelled gives its
// task another random priority. At depth-1 random points the task whose turn it is falls below all others. Some mistakes show in each run
// in which certain pairs of steps, depth of them, come in a certain order. Such a mistake, in a program of n tasks that take k turns, fails
// a run with a chance of at least 1/(n·k^(depth-1)), if each Sleep counts as another task: Burckhardt, Kothari, Musuvathi and Nagarakatte,
// A randomized scheduler with probabilistic guarantees of finding bugs (ASPLOS 2010). Two locks taken in the wrong order have depth 2, and
// so has a lost update. The runs are the same each time. Preemptions has no effect then, and Accesses only makes each access a point.
func Random(n, depth int) ExploreOption {
	return func(c *exploreConfig) { c.Executions, c.Depth = n, max(depth, 1) }
}

// Replay makes only the run that a failure has named with this string, as does the environment variable BRAID_REPLAY.
func Replay(choices string) ExploreOption { return func(c *exploreConfig) { c.Replay = choices } }

// Accesses lets tasks take turns before each single access to a shared variable. Of the runs that differ only in the order of accesses that
// commute, Explore makes one then. It needs a build with the tag explore; otherwise Explore fails:
//
//	go test -tags explore ./...
//
// Braid's own primitives are followed down to their atomics. Other shared variables must be of the types of suspendtest/atomic, or be
// accessed under a lock or after a wait: "all" means all orders of accesses to such variables. All accesses of a run are sequentially
// consistent. A data race is not noticed: see go test -race. No task may wait for a change by looking in a loop, and Yield is no choice.
// Preemptions, Yields and Waits have no effect then. A Sleep takes any time, and the orders in which tasks wake up are all made. Its timer
// never fires before the task waits, since package suspend makes no difference between the two orders.
func Accesses() ExploreOption {
	return func(c *exploreConfig) {
		c.Fine, c.Reduced, c.Asleep, c.Points, c.Preemptions = true, true, true, false, explore.Unlimited
	}
}

// Explore runs a small program, of two to four tasks with a few operations each, in every order in which its tasks can take turns and their
// contexts can be cancelled. It fails t with the first run that is wrong. A run is wrong if a Check or a task's panic says so, if tasks
// wait without end, or if it does not end. It tries the runs without a cancellation first. It logs the number of runs, and names each bound
// that cut off further runs.
//
// program is called for each run. It makes the shared objects and starts the tasks, and must do the same each time. It must not depend on
// the clock of package time, on random numbers, on an earlier run, or on goroutines; suspend.Now is the same in each run. The search
// usually notices a program that breaks this rule. Package fetch, which uses goroutines elsewhere, uses tasks here. The cases of a Select
// are looked at in one order only.
//
// A task runs until it suspends, yields or ends, or comes to the next operation of a primitive: an operation that may suspend, a look such
// as a Try, or the lock of a suspend.Guard. Other tasks take turns only there. An Unlock or a Release is such a place only in a program
// that looks at what tasks hold: by a Try, a case of a Select, or a Len of package keyed. In other programs it makes no difference. The end
// of a member of a Scope or a Group is a place in a program that looks at members, as a Limit and a Shutdown do. No such places are the
// calls of package context (a cancel, and looks at its contexts, which the result names), a Resume, and the operations of a callback. An
// order of operations that shows only in a variable without a lock may be left out.
//
// No task may hold a lock of package sync at such a place, or a Guard: a task that waits for it natively, for five seconds, fails the run
// with its name and its line. Others may take turns between a cancellation and its effect. When all tasks wait, the tasks whose contexts
// can be cancelled are cancelled, one after another. If there is no such task, the run is a deadlock.
//
// Explore finds errors in the logic of a primitive and of its users: values and wake-ups lost between a Resume and a cancellation, and
// sections that are not atomic together. It does not look at the order of single memory accesses, unless Accesses says so.
func Explore(t testing.TB, program func(w *World), opts ...ExploreOption) {
	t.Helper()
	c := exploreConfig{Config: explore.Config{
		Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Yields: 2, Points: true, Asleep: true, Shorter: shorter, Replay: os.Getenv(ReplayVariable),
	}}
	for _, f := range opts {
		f(&c)
	}
	if c.Fine && !explore.Built {
		t.Error("suspendtest: Accesses needs a build with the tag explore: go test -tags explore")
		return
	}
	if c.Depth > 0 {
		c.Reduced = false
	}
	begin := func(w *explore.World) { program(&World{w}) }
	if c.Replay != "" {
		if r := explore.Run(c.Config, begin); r.Failure != nil {
			t.Errorf("the run has failed: %v", r.Failure)
		} else {
			t.Log("the run has not failed")
		}
		return
	}
	if c.Executions == 0 && c.Preemptions < 0 && !c.Reduced {
		c.Executions = enough
	}
	var calm, all explore.Result
	if !c.untilCancelled {
		without := c.Config
		without.Cancellations = explore.Never
		calm = explore.Run(without, begin)
	}
	what := ", without a cancellation,"
	if all = calm; calm.Failure == nil && (c.untilCancelled || calm.Cut.Never) {
		what = ""
		if all = explore.Run(c.Config, begin); !c.untilCancelled {
			all = calm.And(all)
		}
	}
	if all.Failure != nil {
		t.Errorf("run %d of the exploration%s has failed: %v", all.Executions, what, all.Failure)
		return
	}
	hint := ""
	if c.Reduced && all.Executions == 1 {
		hint = "; no two tasks access one variable that Accesses sees"
	}
	t.Logf("explored: %s%s", all, hint)
}

// shorter is the number of runs after a failure, which look for a failing run with fewer turns.
const shorter = 1000

// enough is the default bound on runs, which take a second or two.
const enough = 20_000

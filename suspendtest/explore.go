package suspendtest

import (
	"context"
	"os"
	"testing"

	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// replayVariable names the environment variable for a replay string. If it is set, Explore makes only the run that the string
// describes.
const replayVariable = "BRAID_REPLAY"

// A World is one run of a program under Explore.
type World struct{ w *explore.World }

// Go starts a task that calls f. In some of the runs, ctx is cancelled, at each point where a cancellation makes a difference.
// f should pass ctx to operations that may fail, and context.Background() to operations that must succeed.
func (w *World) Go(name string, f func(ctx context.Context)) { w.w.Go(name, f) }

// Check registers f, which Explore calls at the end of the run, when all tasks have ended. If f returns an error, the run
// fails.
func (w *World) Check(f func() error) { w.w.Check(f) }

// Log adds a line to the trace of the run. The trace is printed if the run fails.
func (w *World) Log(format string, args ...any) { w.w.Log(format, args...) }

// Called marks the beginning of an operation whose order relative to other operations matters. Returned marks the end. Package
// suspendtest/linear calls both methods. With Accesses, Explore may switch tasks at both calls.
func (w *World) Called() { w.w.Called() }

// Returned marks the end of an operation; see Called.
func (w *World) Returned() { w.w.Returned() }

// ExploreOptions configure Explore. The zero value selects the defaults.
type ExploreOptions struct {
	// Cancellations limits the number of contexts that are cancelled in one run. 0 means no limit, and a negative value means none.
	Cancellations int

	// UntilCancelled declares that tasks may wait until their contexts are cancelled. Without it, Explore first tries all orders
	// without a cancellation, and fails if a task then waits forever, because a cancellation would hide a lost wake-up.
	UntilCancelled bool

	// Preemptions makes Explore try all runs with at most this many preemptions; a negative value means no preemption. A preemption is
	// a switch to another task, or a cancellation, while the running task could continue. With 0, Explore tries all runs without a
	// preemption, then all runs with one preemption, and so on. Explore stops when no runs are left, or after 20,000 runs.
	Preemptions int

	// Yields limits how often a task continues after a Yield while another runnable task does not run. Without a limit, a loop that
	// yields until something changes would have endless runs. A Sleep that cannot be cancelled counts as a Yield. With Accesses,
	// Yields limits the repetitions of such a loop instead. 0 means 2, and a negative value means that no task continues so.
	Yields int

	// Waits makes Explore switch tasks only where a task waits, yields or ends, and not at the start of an operation that does not
	// wait. Explore then makes far fewer runs. A program may then also hold a lock of package sync while it uses a primitive.
	Waits bool

	// Executions limits the number of runs, both in the search without cancellations and in the search with cancellations. 0 means
	// 20,000, or no limit with Preemptions or Accesses.
	Executions int

	// Random, if it is not 0, is the number of random runs, and of random runs without a cancellation, that Explore makes. It replaces
	// Executions, and is for programs with too many runs for Explore to try them all. Each task and each cancellable context has a
	// random priority. The next turn goes to the task or context that can continue and has the highest priority. A Sleep that cannot
	// be cancelled gives its task a new random priority. At Depth-1 random points, the running task drops to the lowest priority. A
	// mistake of depth d shows in every run in which d particular pairs of steps have a particular order. In a program of t tasks
	// that take k turns, a random run with Depth d finds such a mistake with a probability of at least 1/(t·k^(d-1)). Each Sleep
	// counts as another task here. See Burckhardt, Kothari, Musuvathi and Nagarakatte, A randomized scheduler with probabilistic
	// guarantees of finding bugs (ASPLOS 2010). A deadlock of two locks has depth 2, and so has a lost update. A Depth of 0 means 1.
	// Each call of Explore makes the same random runs. With Random, Preemptions has no effect, and Accesses only makes Explore switch
	// tasks at each access.
	Random, Depth int

	// Accesses makes Explore switch tasks before every access to a shared variable. Of several runs that differ only in the order of
	// commuting accesses, Explore makes only the first. Accesses needs a build with the tag explore; otherwise Explore fails:
	//
	//	go test -tags explore ./...
	//
	// Explore follows Braid's own primitives down to their atomics. Other shared variables must have types of package
	// suspendtest/atomic, or must be accessed under a lock or after a wait. Explore varies only the order of the accesses to these
	// atomics and to variables of these types. All accesses of a run are sequentially consistent. Explore does not detect data races;
	// use go test -race. The options Preemptions and Waits have no effect, and Yield is needed nowhere. A Sleep takes an arbitrary
	// time, and Explore tries all orders in which sleeping tasks wake up. The timer of a Sleep never fires before the task waits,
	// because both orders have the same effect in package suspend.
	//
	// A task may poll in a loop, such as that of a spin lock. If a task repeats the same accesses 100 times and changes nothing,
	// Explore starts again, and limits such loops. After the first round and as many repetitions as Yields allows, the task then waits
	// until another task changes something that the loop has read, or until no other task can take a step. The log names this limit.
	// The loop should read no shared variable that Accesses does not see.
	Accesses bool
}

// config returns the configuration of the search.
func (o ExploreOptions) config() explore.Config {
	c := explore.Config{
		Preemptions: limit(o.Preemptions, explore.Unlimited), Cancellations: limit(o.Cancellations, explore.Unlimited), Yields: limit(o.Yields, 2),
		Points: !o.Waits, Asleep: true, Executions: o.Executions, Shorter: shorter, Replay: os.Getenv(replayVariable),
	}
	if o.Accesses {
		c.Fine, c.Reduced, c.Points, c.Preemptions = true, true, false, explore.Unlimited
	}
	if o.Random != 0 {
		c.Executions, c.Depth, c.Reduced = o.Random, max(o.Depth, 1), false
	}
	return c
}

// limit returns the limit that n means: 0 stands for the default, and a negative number for 0.
func limit(n, byDefault int) int {
	if n == 0 {
		return byDefault
	}
	return max(n, 0)
}

// Explore runs a small program, of two to four tasks with a few operations each, in every order in which its tasks can take
// turns and their contexts can be cancelled. Explore fails t at the first run that fails. A run fails if a Check returns an
// error, if a task panics, if tasks wait forever, if the run does not end after 10,000 turns, or if a task computes for 30
// seconds without a turn of another task being possible. Explore tries the runs without a cancellation first. Explore logs the number of
// runs and each limit that cut off further runs.
//
// Explore calls program for each run. program makes the shared objects, starts the tasks, and must do the same in each run.
// program must not depend on the clock of package time, on random numbers, on an earlier run, or on goroutines; suspend.Now
// returns the same times in each run. Explore usually detects a program that breaks this rule. Under Explore, package fetch
// uses tasks in place of goroutines. The cases of a Select are tried in one order only.
//
// A task runs until it suspends, yields or ends, or until it reaches the next operation of a primitive: an operation that may
// suspend, a query such as a Try, or the lock of a suspend.Guard. Explore switches tasks only at these points. An Unlock or a
// Release is such a point only if the program queries which locks and permits tasks hold: with a Try, a case of a Select, or
// Len of package keyed. In other programs, a switch there makes no difference. The end of a member of a Scope or a Group is a
// point only if the program queries the members, as Limit and Shutdown do. Calls of package context and its contexts are not
// points; the log names this as a limit. Resume and the operations of a callback are not points either. Explore may omit an
// order of operations that only affects a variable that no lock protects.
//
// At such a point, no task may hold a lock of package sync or a Guard. If another task waits natively for the lock for five
// seconds, the run fails, and the failure names the waiting task and its line. Other tasks may run between a cancellation and
// its effect. When all tasks wait, Explore cancels the tasks whose contexts can be cancelled, one after another. If there is no
// such task, the run fails as a deadlock.
//
// Explore finds errors in the logic of a primitive and its users: values and wake-ups that are lost between a Resume and a
// cancellation, and operations that are wrongly assumed to be atomic together. Explore does not vary the order of single memory
// accesses, except with the option Accesses.
func Explore(t testing.TB, program func(w *World), o ExploreOptions) {
	t.Helper()
	c := o.config()
	if c.Fine && !explore.Built {
		t.Error("suspendtest: Accesses needs a build with the tag explore: go test -tags explore")
		return
	}
	begin := func(w *explore.World) { program(&World{w}) }
	if c.Replay != "" {
		if r := explore.Run(c, begin); r.Failure != nil {
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
	if !o.UntilCancelled {
		without := c
		without.Cancellations = explore.Never
		calm = explore.Run(without, begin)
	}
	what := ", without a cancellation,"
	if all = calm; calm.Failure == nil && (o.UntilCancelled || calm.Cut.Never) {
		what = ""
		if all = explore.Run(c, begin); !o.UntilCancelled {
			all = calm.And(all)
		}
	}
	if all.Failure != nil {
		t.Errorf("run %d of the exploration%s has failed: %v", all.Executions, what, all.Failure)
		return
	}
	hint := ""
	switch {
	case c.Reduced && all.Executions == 1:
		hint = "; no two tasks access one variable that Accesses sees"
	case all.Atomics && c.Depth == 0:
		hint = "; only Accesses makes Explore switch tasks at the variables of suspendtest/atomic"
	}
	t.Logf("explored: %s%s", all, hint)
}

// shorter is the number of runs that Explore makes after a failure to find a failing run with fewer turns.
const shorter = 1000

// enough is the default limit on the number of runs. That many runs take a second or two.
const enough = 20_000

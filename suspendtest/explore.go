package suspendtest

import (
	"context"
	"os"
	"testing"

	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// ReplayVariable is the environment variable with which Explore makes one run only, that of a replay string.
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

// An ExploreOption changes what Explore does.
type ExploreOption func(*explore.Config)

// Cancellations bounds the number of contexts that are cancelled in one run. There is no bound otherwise.
func Cancellations(n int) ExploreOption { return func(c *explore.Config) { c.Cancellations = n } }

// Spurious has each task's Park return for no reason, up to n times in a run, as a scheduler's may. It does not otherwise.
func Spurious(n int) ExploreOption { return func(c *explore.Config) { c.Spurious = n } }

// Steps bounds the turns that tasks take in one run; more are taken for a livelock. It is 10000 otherwise.
func Steps(n int) ExploreOption { return func(c *explore.Config) { c.Steps = n } }

// Executions bounds the number of runs. There is no bound otherwise.
func Executions(n int) ExploreOption { return func(c *explore.Config) { c.Executions = n } }

// Replay makes one run only: the one that a failure has named with this string. So does the environment variable
// BRAID_REPLAY.
func Replay(choices string) ExploreOption { return func(c *explore.Config) { c.Replay = choices } }

// Explore runs a small program, of two to four tasks with a few operations each, in every order in which its tasks can take turns and
// their contexts can be cancelled. It fails t with the first run that is wrong. A run is wrong if a Check or a task's panic says so, if
// tasks wait without end, or if it does not end. It logs the number of runs, and whether they were all.
//
// program is called for each run. It makes the shared objects and starts the tasks, and must do the same each time. It must not depend on
// the time, on random numbers (Select, unlike SelectOrdered), on goroutines or on an earlier run. The search notices this as a rule.
//
// A task runs until it suspends through package suspend, yields or ends. Only there others take turns, and a task that waits in another
// way blocks all. Others may take turns between a cancellation and its effect. When all tasks wait, those whose contexts can be cancelled
// are, one after another. If there are none, the run is a deadlock.
//
// Explore finds errors in the logic of a primitive: values and wake-ups lost between a Resume and a cancellation. It does not look at the
// order of single memory accesses.
func Explore(t testing.TB, program func(w *World), opts ...ExploreOption) {
	t.Helper()
	c := explore.Config{Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Replay: os.Getenv(ReplayVariable)}
	for _, f := range opts {
		f(&c)
	}
	r := explore.Run(c, func(w *explore.World) { program(&World{w}) })
	switch {
	case r.Failure != nil:
		t.Errorf("run %d of the exploration has failed: %v", r.Executions, r.Failure)
	case r.Exhausted:
		t.Logf("explored: %d runs, which are all", r.Executions)
	default:
		t.Logf("explored: %d runs, and there are more", r.Executions)
	}
}

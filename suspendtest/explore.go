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

// Check has f called at the end of each run, when all tasks have ended. An error is a failure.
func (w *World) Check(f func() error) { w.w.Check(f) }

// OnIdle has f called whenever all tasks wait that have not ended, with their names. An error is a failure: it is here
// that a wake-up is missed that has been lost, where the waiting task could still be cancelled.
func (w *World) OnIdle(f func(waiting []string) error) { w.w.OnIdle(f) }

// Log notes something in the trace of what a failed run has done.
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

// Explore runs a small program, of two to four tasks with a few operations each, in every way in which its tasks can take
// turns, and in which their contexts can be cancelled. It fails t with the first run in which a Check or a task's panic
// says that something is wrong, in which tasks wait for ever, or which does not end; and it logs how many runs there
// were, and whether they were all.
//
// program is called for each run. It makes what the tasks share, and starts them, and must do the same each time: what
// depends on the time, on random numbers (Select, unlike SelectOrdered), on goroutines or on what an earlier run has left
// makes the search meaningless, which is noticed as a rule. A task runs until it suspends, through package suspend, or
// yields, or ends; nothing else is a point where others take turns, and a task that waits in another way blocks all.
// Being cancelled and going on after it are two things: others may take turns in between. When all tasks wait, those
// whose contexts can be cancelled are, one after another; if there are none, that is a deadlock.
//
// What it finds are the errors of a primitive's logic: values and wake-ups lost between a Resume and a cancellation. What
// happens between two accesses to memory is not its subject.
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

package runner

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend/sched"
)

// stats holds counts that the Runner updates, and publishes for other goroutines from time to time.
type stats struct {
	steps            int
	wakes, suspended uint64
	shownWakes       atomicx.Uint64
	held             atomicx.Int64  // counts the Holds that have not been released
	shown            atomicx.Uint64 // 2*suspended, plus 1 while a task runs
	coroutines       atomicx.Int64  // the length of Runner.all
	shownAt          int            // the value of steps at the last call of publish
}

// countStep counts a step, and publishes the counts when that is due.
func (s *stats) countStep() {
	if s.steps++; s.steps-s.shownAt >= publishing {
		s.publish()
	}
}

func (s *stats) publish() {
	s.shownAt = s.steps
	s.shownWakes.Store(s.wakes)
	s.shown.Store(2*s.suspended + 1)
}

// sleeps publishes the counts, and the fact that no task runs.
func (s *stats) sleeps() {
	s.shownWakes.Store(s.wakes)
	s.shown.Store(2 * s.suspended)
}

func (s *stats) read(live int64) sched.Stats {
	shown := s.shown.Load()
	all := sched.Stats{Live: live, Suspended: min(int64(shown/2)+s.held.Load(), live), Wakes: s.shownWakes.Load(), Coroutines: s.coroutines.Load()}
	if shown%2 != 0 && all.Suspended < live {
		all.Running = 1
	}
	return all
}

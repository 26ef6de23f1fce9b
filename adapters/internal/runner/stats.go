package runner

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// stats are counted on the Runner, and shown to others now and then.
type stats struct {
	steps            int
	wakes, suspended uint64
	shownWakes       atomicx.Uint64
	held             atomicx.Int64  // Holds that are not released
	shown            atomicx.Uint64 // suspended, doubled; odd: a task runs
	shownAt          int            // steps
}

// step counts one.
func (s *stats) step() {
	if s.steps++; s.steps-s.shownAt >= publishing {
		s.publish()
	}
}

func (s *stats) publish() {
	s.shownAt = s.steps
	s.shownWakes.Store(s.wakes)
	s.shown.Store(2*s.suspended + 1)
}

// sleeps publishes that no task runs.
func (s *stats) sleeps() {
	s.shownWakes.Store(s.wakes)
	s.shown.Store(2 * s.suspended)
}

func (s *stats) read(live int64) suspend.Stats {
	shown := s.shown.Load()
	all := suspend.Stats{Live: live, Suspended: min(int64(shown/2)+s.held.Load(), live), Wakes: s.shownWakes.Load()}
	if shown%2 != 0 && all.Suspended < live {
		all.Running = 1
	}
	return all
}

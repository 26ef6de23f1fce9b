package fetch

import (
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// goroutine runs f on a new goroutine. Under suspendtest.Explore f is a task.
func goroutine(f func()) { preempt.Go(f) }

// afterOthers runs f when the goroutines that this processor has queued have run. runtime.Gosched would queue f behind the
// goroutines of all processors, where goroutines that compute come again and again. The second goroutine takes the place
// of f as the next to run, so that f goes to the end of the queue.
func afterOthers(f func()) {
	go f()
	go func() {}()
}

// A limit calls a function when a time is over. A nil limit never does. Under suspendtest.Explore a task calls it, at any time.
type limit struct {
	timer *time.Timer
	after time.Duration
}

func newLimit(after time.Duration, f func()) *limit {
	l := &limit{after: after}
	l.again(f)
	return l
}

func (l *limit) again(f func()) {
	switch {
	case preempt.Explored():
		goroutine(f)
	case l.timer == nil:
		l.timer = time.AfterFunc(l.after, f)
	default:
		l.timer.Reset(l.after)
	}
}

func (l *limit) stop() {
	if l != nil && l.timer != nil {
		l.timer.Stop()
	}
}

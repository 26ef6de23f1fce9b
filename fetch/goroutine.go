package fetch

import (
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// goroutine runs f on a new goroutine. Under suspendtest.Explore, f runs as a task.
func goroutine(f func()) { preempt.Go(f) }

// afterOthers runs f after the goroutines that are in this processor's run queue. runtime.Gosched would put f into the global
// queue, to which compute-bound goroutines return again and again. The second go statement takes the runnext slot from f, so
// that f moves to the end of the local queue.
func afterOthers(f func()) {
	go f()
	go func() {}()
}

// A limit calls a function after a delay. Under suspendtest.Explore, a task calls the function at an arbitrary time. A nil
// limit never calls a function.
type limit struct {
	timer *time.Timer
}

func newLimit(after time.Duration, f func()) *limit {
	l := new(limit)
	l.again(after, f)
	return l
}

// again starts l once more, with another delay.
func (l *limit) again(after time.Duration, f func()) {
	switch {
	case preempt.Explored():
		goroutine(f)
	case l.timer == nil:
		l.timer = time.AfterFunc(after, f)
	default:
		l.timer.Reset(after)
	}
}

func (l *limit) stop() {
	if l != nil && l.timer != nil {
		l.timer.Stop()
	}
}

package eventloop_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A timer's callback starts a task, which is like any other: it suspends, and the loop continues with its timers.
func TestATimerStartsATask(t *testing.T) {
	l := open(t, eventloop.Options{})
	for range 20 {
		done := make(chan struct{})
		task(t, l, func() {}) // leaves an idle coroutine for the next task
		l.AfterFunc(time.Microsecond, func() {
			must(0, l.Go(func() {
				_ = suspend.Sleep(context.Background(), time.Microsecond)
				close(done)
			}))
		})
		within(t, func() { <-done })
	}
	schedtest.Eventually(t, "all have ended", func() bool { return l.Stats().Live == 0 })
}

// Stats counts the wake-ups of a loop that falls asleep again each time.
func TestWakesOfALoopThatSleeps(t *testing.T) {
	l := open(t, eventloop.Options{})
	task(t, l, func() {
		for range 100 {
			_ = suspend.Sleep(context.Background(), time.Microsecond)
		}
		if s := l.Stats(); s.Wakes < 50 {
			t.Errorf("%+v after 100 wake-ups", s)
		}
	})
}

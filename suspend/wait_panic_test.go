package suspend_test

import (
	"context"
	"errors"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/schedtest"
	"github.com/braidgo/braid/suspend"
)

// moody is a context that panics when it is first asked to call back.
type moody struct {
	context.Context
	asked *int
	fire  *func()
}

func (c moody) AfterFunc(f func()) func() bool {
	if *c.asked++; *c.asked == 1 {
		panic("moody")
	}
	*c.fire = f
	return func() bool { return true }
}

// A registration that has failed is not taken for one: the next wait with the same context registers again, and is
// cancelled.
func TestContextThatPanicsOnceStillCancels(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		inner, cancel := context.WithCancel(bg)
		var fire func()
		ctx := moody{inner, new(int), &fire}
		wait := func() error {
			_, err := suspend.Suspend(ctx, func(suspend.Resumer[int]) (int, bool) { return 0, false })
			return err
		}
		schedtest.Panics(t, "moody", func() { _ = wait() })
		_ = s.Go(func() {
			cancel()
			if fire == nil {
				t.Error("nobody is registered: the wait would not end")
				panic("it hangs")
			}
			fire()
		})
		if err := wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Suspend = %v", err)
		}
	})
}

// A Then whose level panics as it is begun leaves nothing waiting, and loses nothing.
func TestThenWhoseLevelPanics(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		inner, cancel := context.WithCancel(bg)
		defer cancel()
		var m mailbox
		none := suspend.Map(suspend.Done(rude{inner}), func(struct{}, error) (int, error) { return 0, nil })
		schedtest.Panics(t, "rude", func() {
			suspend.Then(bg, suspend.Choose(m.recv(any1), none), s, func(int, error) { t.Error("called") })
		})
		if m.readers.Len() != 0 {
			t.Error("it is left in the queue")
		}
		m.send(1)
		if len(m.letters) != 1 {
			t.Error("the letter is lost")
		}
		suspend.Yield()
	})
}

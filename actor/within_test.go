package actor_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/suspend"
)

// A timeout ends a wait even if messages that it skips keep arriving.
func TestTimeoutAmongSkipped(t *testing.T) {
	for name, body := range map[string]func(self *actor.Self[int], f func(int) error, late func() error) error{
		"handle": func(self *actor.Self[int], f func(int) error, late func() error) error {
			if err := self.HandleWithin(bg, 10*time.Millisecond, f); err == actor.ErrTimeout {
				return late()
			} else {
				return err
			}
		},
		"react": func(self *actor.Self[int], f func(int) error, late func() error) error {
			return self.ReactWithin(10*time.Millisecond, f, late)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				var took time.Duration
				ref := actor.Spawn(bg, suspend.Goroutines, func(_ context.Context, self *actor.Self[int]) error {
					return body(self, func(int) error { time.Sleep(2 * time.Millisecond); return actor.Skip },
						func() error { took = time.Since(begun); return nil })
				}, actor.Options[int]{})
				for range 1000 {
					if ref.Send(1) != nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				_ = ref.Wait(bg)
				if took > 100*time.Millisecond { // the last look covers the messages that arrived during the look before
					t.Errorf("a timeout of 10ms has ended the wait after %v", took)
				}
			})
		})
	}
}

// With a timeout of zero, a wait looks at the messages that are in the mailbox, but not at messages that it causes.
func TestWithinZero(t *testing.T) {
	in := actor.Open[int](bg, actor.Options[int]{})
	_ = in.Ref().Send(0)
	n := 0
	err := in.HandleWithin(bg, 0, func(m int) error {
		if n++; n > 1000 {
			return errOops
		}
		_ = in.Ref().Send(m + 1)
		return actor.Skip
	})
	require.ErrorIs(t, err, actor.ErrTimeout, "%d calls", n)
}

// pending receives a message that is already in the mailbox.
func pending[M any](in *actor.Inbox[M]) (m M, err error) {
	err = in.HandleWithin(bg, -1, func(x M) error { m = x; return nil })
	return m, err
}

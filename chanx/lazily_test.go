package chanx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// With a buffer, it is not certain that another task ever meets a cancelled waiter. A cancellation therefore ends a wait with a
// context of Lazily at once. Otherwise the wait would hang.
func TestWithABufferLazilyIsEager(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		empty, full := chanx.New[int](1), chanx.New[int](1)
		_, _ = full.TrySend(1)
		for name, op := range map[string]func(ctx context.Context) error{
			"Recv": func(ctx context.Context) error { _, err := empty.Recv(ctx); return err },
			"Send": func(ctx context.Context) error { return full.Send(ctx, 2) },
		} {
			ctx, cancel := schedtest.WithCancel()
			ended := false
			_ = s.Go(func() {
				if err := op(suspend.Lazily(ctx)); !errors.Is(err, context.Canceled) {
					t.Errorf("%s = %v after the cancellation", name, err)
				}
				ended = true
			})
			schedtest.Settle()
			cancel()
			schedtest.Eventually(t, name+" returns", func() bool { return ended })
		}
		_ = empty.Close() // ends the waits, in case they hang
		_ = full.Close()
	})
}

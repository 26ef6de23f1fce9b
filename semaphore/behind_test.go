package semaphore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// Two waiters have contexts of their own, which end with their parent. The request of the first does not fit. Its cancellation
// must not grant the second a permit, because the second is being cancelled, too.
func TestWaitersThatEndTogetherGetNothing(t *testing.T) {
	for _, cause := range []error{nil, errors.New("stop")} {
		s := semaphore.New(2)
		require.True(t, s.TryAcquire(1))
		parent, stop := cancel.New(context.Background())
		c1, _ := cancel.New(parent)
		c2, _ := cancel.New(parent)
		var first, second error
		schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
			_ = on.Go(func() { first = s.Acquire(c1, 2) })
			_ = on.Go(func() { second = s.Acquire(c2, 1) })
			schedtest.Settle()
			stop(cause)
			schedtest.Settle()
		})
		require.ErrorIs(t, first, context.Canceled)
		require.ErrorIs(t, second, context.Canceled, "with the cause %v", cause)
		require.True(t, s.TryAcquire(1))
	}
}

// A Select is first in the queue, and its request does not fit. Another of its cases has won, but its scheduler does not run the
// task. The waiters behind it are served anyway.
func TestASelectThatIsOverDelaysNobody(t *testing.T) {
	for name, next := range map[string]func(s *semaphore.Semaphore) error{
		"Acquire": func(s *semaphore.Semaphore) error { return s.Acquire(context.Background(), 1) },
		"Release": func(s *semaphore.Semaphore) error {
			got := make(chan error)
			go func() { got <- s.Acquire(context.Background(), 2) }()
			s.Release(1)
			return <-got
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			s, p := semaphore.New(2), promise.New[int]()
			require.True(t, s.TryAcquire(1))
			schedtest.OnFIFO(t, func(on *fifo.Scheduler) {
				_ = on.Go(func() {
					_, _ = suspend.Select(context.Background(), suspend.CaseOf(s.AcquireOp(2)), suspend.CaseOf(p.AwaitOp()))
				})
				schedtest.Settle()
				_ = p.Fill(1)
				got := make(chan error)
				go func() { got <- next(s) }()
				require.NoError(t, <-got) // the scheduler does not run the Select's task meanwhile
			})
		})
	}
}

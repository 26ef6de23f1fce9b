package fifo_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// OnIdle is set once, and is called each time the scheduler becomes idle.
func TestOnIdleLasts(t *testing.T) {
	var batch []int
	var batches [][]int
	var answers [3]mvar.MVar[int]
	o := fifo.Options{OnIdle: func() {
		batches = append(batches, batch)
		for _, i := range batch {
			answers[i].TryPut(i)
		}
		batch = nil
	}}
	run(t, o, func(s *fifo.Scheduler) {
		for i := range answers {
			_ = s.Go(func() {
				for range 4 {
					suspend.Yield()
					batch = append(batch, i)
					_, _ = answers[i].Take(bg)
				}
			})
		}
	})
	if len(batches) != 4 {
		t.Errorf("%d batches: %v", len(batches), batches)
	}
	for _, b := range batches {
		if len(b) != 3 {
			t.Errorf("batches: %v", batches)
		}
	}
}

// The coroutines of tasks that have ended count until their Run ends.
func TestCoroutinesOfARun(t *testing.T) {
	s := fifo.New(fifo.Options{})
	require.NoError(t, s.Run(bg, func(context.Context) error {
		for range 10 {
			_ = s.Go(suspend.Yield)
		}
		for range 3 {
			suspend.Yield()
		}
		require.EqualValues(t, 1, s.Stats().Live)
		require.EqualValues(t, 11, s.Stats().Coroutines)
		return nil
	}))
	require.Zero(t, s.Stats().Coroutines)
}

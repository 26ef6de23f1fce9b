package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

func Example() {
	main()
	// Output: audited: true <nil> free: 4 16 <nil>
}

// An audit sees a consistent state of the desk, even while groups of two schedulers book and cancel.
func TestAuditInAStorm(t *testing.T) {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	d := newDesk(need{4, 16})
	require.NoError(t, scope.Run(t.Context(), func(ctx context.Context, s *scope.Scope) error {
		var running atomic.Int32
		for i, on := range []suspend.Spawner{pool, suspend.Goroutines} {
			running.Add(1)
			s.Go(on, func(ctx context.Context) error {
				defer running.Add(-1)
				var groups []string
				for k := range 20 {
					groups = append(groups, fmt.Sprint("group ", i, k))
				}
				_, err := d.storm(ctx, on, groups, time.Millisecond)
				return err
			})
		}
		for running.Load() > 0 {
			if err := stm.Atomically(ctx, d.audit); err != nil {
				return err
			}
		}
		return nil
	}))
	require.Equal(t, 4, d.rooms.Load())
	require.Equal(t, 16, d.seats.Load())
}

// A waiting group gets the seats that another group returns. A group whose deadline comes first has booked nothing.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(need{2, 8})
		require.NoError(t, d.book(t.Context(), "ants", need{2, 4}))
		require.ErrorIs(t, d.book(t.Context(), "ants", need{}), errTwice)
		late, done := context.WithTimeout(t.Context(), time.Second)
		defer done()
		begun := time.Now()
		require.ErrorIs(t, d.book(late, "bees", need{1, 4}), errFull)
		require.Equal(t, time.Second, time.Since(begun))
		require.ErrorIs(t, d.cancel(t.Context(), "bees"), errNobody)

		booked := make(chan error)
		go func() { booked <- d.book(t.Context(), "wasps", need{1, 4}) }()
		synctest.Wait()
		require.Equal(t, 4, d.seats.Load(), "a group that waits holds nothing")
		require.NoError(t, d.cancel(t.Context(), "ants"))
		require.NoError(t, <-booked)
		require.Equal(t, 1, d.rooms.Load())
		require.Equal(t, 4, d.seats.Load())
		ok, err := stm.Try(d.audit)
		require.True(t, ok)
		require.NoError(t, err)
	})
}

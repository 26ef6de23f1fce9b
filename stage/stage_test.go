package stage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

func TestMain(m *testing.M) { schedtest.Main(m) }

func double(_ context.Context, n int) (int, error) { return 2 * n, nil }

// holds checks the invariants of the figures.
func holds(t testing.TB, s stage.Stats) {
	t.Helper()
	require.Equal(t, s.Arrived, s.Accepted+s.Rejected, "arrived: %+v", s)
	require.Equal(t, s.Accepted, s.Completed+s.Failed+s.Late+s.Cancelled+uint64(s.Waiting+s.Busy+s.Delayed), "accepted: %+v", s)
}

func TestDo(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		s := stage.New("double", double, stage.Options{On: on, Width: 2, Queue: 4})
		p := stage.Pipe(s, stage.New("more", func(_ context.Context, n int) (int, error) { return n + 1, nil }, stage.Options{On: on}))
		for i := range 10 {
			v, err := s.Do(bg, i)
			require.NoError(t, err)
			require.Equal(t, 2*i, v)
			w, err := p.Do(bg, i)
			require.NoError(t, err)
			require.Equal(t, 2*i+1, w)
		}
		require.EqualValues(t, 20, s.Stats().Completed)
		holds(t, s.Stats())
		require.NoError(t, s.Shutdown(bg))
		_, err := s.Do(bg, 1)
		require.ErrorIs(t, err, stage.ErrClosed)
		require.ErrorIs(t, err, suspend.ErrClosed)
	})
}

package cancellation

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

type move func(ctx context.Context, from, to *mvar.MVar[int]) error

// One point: on fifo the order of steps is known, so the test cancels exactly where it wants to.
func TestOnePoint(t *testing.T) {
	err := fifo.Run(context.Background(), func(context.Context) error {
		from, to := mvar.NewFull(1), mvar.NewFull(2)
		ctx, stop := cancel.New(context.Background())
		var err error
		_ = suspend.Here().Go(func() { err = Move(ctx, from, to) })
		suspend.Yield() // Move has taken 1 and waits for room
		stop(errors.New("enough"))
		suspend.Yield() // Move has ended
		require.ErrorContains(t, err, "enough")
		v, full := from.TryTake()
		require.True(t, full, "the value is back")
		require.Equal(t, 1, v)
		return nil
	})
	require.NoError(t, err)
}

// A timeout: in a synctest bubble a minute takes no time, and a fifo is an ordinary goroutine there.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = fifo.Run(context.Background(), func(ctx context.Context) error {
			ctx, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			begun := time.Now()
			err := Move(ctx, mvar.New[int](), mvar.New[int]())
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(begun))
			return nil
		})
	})
}

// kept is a small program. Whatever happens, two values are left at its end.
func kept(m move) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		from, to := mvar.NewFull(1), mvar.NewFull(2)
		taken := 0
		w.Go("mover", func(ctx context.Context) { _ = m(ctx, from, to) })
		w.Go("taker", func(ctx context.Context) {
			if _, err := to.Take(ctx); err == nil {
				taken++
			}
		})
		w.Check(func() error {
			for _, place := range []*mvar.MVar[int]{from, to} {
				if _, full := place.TryTake(); full {
					taken++
				}
			}
			if taken != 2 {
				return fmt.Errorf("%d of 2 values are left", taken)
			}
			return nil
		})
	}
}

// Every point: Explore runs the program in each order, and cancels each task at every point where this can matter.
func TestEveryPoint(t *testing.T) {
	suspendtest.Explore(t, kept(Move), suspendtest.ExploreOptions{})
}

// The test must be able to fail, so it also runs the program with a mistake.
func TestEveryPointFindsTheMistake(t *testing.T) {
	failed := &failure{TB: t}
	suspendtest.Explore(failed, kept(Careless), suspendtest.ExploreOptions{})
	require.Contains(t, failed.text, "1 of 2 values are left")
	t.Log(failed.text)
}

// Many tasks: random runs any runnable task after each step. A seed repeats a failure.
func TestManyTasks(t *testing.T) {
	const movers = 8
	for seed := range uint64(200) {
		to, left := mvar.New[int](), 0
		from := make([]*mvar.MVar[int], movers)
		s := random.New(random.Options{Seed: seed + 1})
		err := s.Run(context.Background(), func(context.Context) error {
			for i := range from {
				from[i] = mvar.NewFull(i)
				ctx, stop := cancel.New(context.Background())
				_ = s.Go(func() { _ = Move(ctx, from[i], to) })
				_ = s.Go(func() { stop(nil) })
				_ = s.Go(func() {
					if _, err := to.Take(ctx); err == nil {
						left++
					}
				})
			}
			return nil
		})
		require.NoError(t, err)
		for _, place := range append(from, to) {
			if _, full := place.TryTake(); full {
				left++
			}
		}
		require.Equal(t, movers, left, "seed %d", seed+1)
	}
}

// A failure is a test that is expected to fail.
type failure struct {
	testing.TB
	text string
}

func (f *failure) Errorf(format string, args ...any) { f.text = fmt.Sprintf(format, args...) }

package stage_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
)

// Tasks of a higher priority begin first. They displace the last task of the lowest priority, which fails with an error that says
// so.
func TestPriority(t *testing.T) {
	for _, dead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			let := make(chan struct{})
			var begun, given []int
			s := stage.New("s", func(_ context.Context, n int) (int, error) { begun = append(begun, n); <-let; return n, nil },
				stage.Options{Width: 1, Queue: 3, Reject: true}).Prioritize(func(n int) int { return n / 10 })
			if dead {
				s.OnFail(func(_ context.Context, n int, err error) {
					require.ErrorIs(t, err, stage.ErrDisplaced)
					given = append(given, n)
				})
			}
			answers := map[int]promise.Future[int]{}
			begin := func(n int) (err error) {
				f, err := s.Begin(bg, n)
				answers[n] = f
				synctest.Wait()
				return err
			}
			for _, n := range []int{0, 1, 2, 11} {
				require.NoError(t, begin(n))
			}
			require.ErrorIs(t, begin(3), stage.ErrFull, "it displaces no equal")
			require.ErrorIs(t, begin(4), stage.ErrFull)
			require.NoError(t, begin(99), "in place of 2")
			require.NoError(t, begin(12), "in place of 1")
			require.ErrorIs(t, begin(13), stage.ErrFull)
			for _, n := range []int{1, 2} {
				_, err := answers[n].Await(bg)
				require.ErrorIs(t, err, stage.ErrDisplaced)
				require.ErrorIs(t, err, stage.ErrOverload)
			}
			require.EqualValues(t, 2, s.Stats().Late)
			holds(t, s.Stats())
			close(let)
			require.NoError(t, s.Shutdown(bg))
			require.Equal(t, []int{0, 99, 11, 12}, begun)
			holds(t, s.Stats())
			if dead {
				require.Equal(t, []int{2, 1}, given)
			}
		})
	}
}

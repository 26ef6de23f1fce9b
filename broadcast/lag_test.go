package broadcast_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// Each gap is reported once, in its place, with its size.
func TestLag(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		topic := broadcast.New[int]()
		sub := topic.Subscribe(2, broadcast.Lag)
		publish := func(values ...int) {
			for _, v := range values {
				require.NoError(t, topic.Publish(bg, v))
			}
		}
		misses := func(n uint64) {
			t.Helper()
			_, err := sub.Recv(bg)
			require.Equal(t, &broadcast.LaggedError{Missed: n}, err)
		}
		gets := func(values ...int) {
			t.Helper()
			for _, want := range values {
				v, err := sub.Recv(bg)
				require.NoError(t, err)
				require.Equal(t, want, v)
			}
		}
		schedtest.Run(t, s, func() {
			publish(0, 1, 2, 3, 4)
			cancelled, cancel := schedtest.WithCancel()
			cancel()
			_, err := sub.Recv(cancelled)
			require.ErrorIs(t, err, cancelled.Err())
			misses(3) // the cancelled call has not consumed the report
			gets(3, 4)
			publish(5, 6)
			gets(5)
			publish(7)
			gets(6, 7) // no value was dropped
			publish(8, 9, 10)
			misses(1)
			publish(11) // drops 9
			misses(1)
			gets(10, 11)
		})
		schedtest.Run(t, s, func() { gets(12) }, func() { publish(12) })
		schedtest.Run(t, s, func() {
			publish(20, 20, 20)
			c := suspend.CaseOf(sub.RecvOp())
			_, err := suspend.Select(bg, c)
			require.NoError(t, err)
			_, err = c.Result()
			require.Equal(t, &broadcast.LaggedError{Missed: 1}, err)
			require.Equal(t, "broadcast: missed values: 1", err.Error())
			publish(30, 31, 32)
			require.NoError(t, topic.Close())
			var got []any
			for v, err := range sub.All(bg) {
				if err != nil {
					got = append(got, err.Error())
				} else {
					got = append(got, v)
				}
			}
			require.Equal(t, []any{"broadcast: missed values: 3", 31, 32}, got, "All continues after the gap")
			_, err = sub.Recv(bg)
			require.Equal(t, broadcast.ErrClosed, err)
		})
	})
}

// The end of a topic hides no gap. The Close of the subscription does.
func TestLagAtTheEnd(t *testing.T) {
	topic := broadcast.New[int]()
	kept, closed := topic.Subscribe(1, broadcast.Lag), topic.Subscribe(1, broadcast.Lag)
	require.Equal(t, 2, topic.Subscribers())
	for i := range 3 {
		require.NoError(t, topic.Publish(bg, i))
	}
	closed.Close()
	require.Equal(t, 1, topic.Subscribers())
	require.NoError(t, topic.Close())
	require.Zero(t, topic.Subscribers())
	_, err := closed.Recv(bg)
	require.Equal(t, broadcast.ErrClosed, err)
	_, err = kept.Recv(bg)
	require.Equal(t, &broadcast.LaggedError{Missed: 2}, err)
	v, err := kept.Recv(bg)
	require.NoError(t, err)
	require.Equal(t, 2, v)
	_, err = kept.Recv(bg)
	require.Equal(t, broadcast.ErrClosed, err)
}

// The values that a subscription has received, and those that it reported as missed, are all published values, in order.
func TestLagConserves(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var received, missed, failed atomic.Int64
		covered := func() bool { return received.Load() > 0 && missed.Load() > 0 && failed.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			const subscribers, last = 3, 40
			topic := broadcast.New[int]()
			var subs []*broadcast.Subscription[int]
			for i := range subscribers {
				subs = append(subs, topic.Subscribe(1+i, broadcast.Lag))
			}
			schedtest.Stress(t, next, subscribers+1, func(i int, rng *rand.Rand) {
				if i == subscribers {
					for v := range last {
						_ = topic.Publish(bg, v)
						if rng.IntN(3) == 0 {
							suspend.Yield()
						}
					}
					_ = topic.Close()
					return
				}
				at := 0
				for {
					ctx, cancel := schedtest.MayCancel(rng)
					v, err := subs[i].Recv(ctx)
					cancel()
					var lagged *broadcast.LaggedError
					switch {
					case err == nil && v == at:
						at++
						received.Add(1)
					case errors.As(err, &lagged):
						at += int(lagged.Missed)
						missed.Add(1)
					case err == broadcast.ErrClosed:
						if at != last {
							t.Errorf("at %d of %d", at, last)
						}
						return
					case err == nil:
						t.Errorf("got %d, want %d", v, at)
						return
					default:
						failed.Add(1)
					}
				}
			})
		}
	})
}

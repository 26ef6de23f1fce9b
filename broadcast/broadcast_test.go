package broadcast_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/broadcast"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

// Each subscriber with the policy Wait gets all values, in the same order.
func TestAllGetAllInOneOrder(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const publishers, each = 4, 50
		topic := broadcast.New[int]()
		var left atomic.Int32
		left.Store(publishers)
		got := make([][]int, 3)
		var fs []func()
		for i := range got {
			sub := topic.Subscribe(1+i, broadcast.Wait)
			fs = append(fs, func() {
				for v, err := range sub.All(bg) {
					if err != nil {
						t.Error(err)
					}
					got[i] = append(got[i], v)
				}
			})
		}
		for p := range publishers {
			fs = append(fs, func() {
				for i := range each {
					if err := topic.Publish(bg, p*each+i); err != nil {
						t.Error(err)
					}
				}
				if left.Add(-1) == 0 {
					_ = topic.Close()
				}
			})
		}
		schedtest.Run(t, s, fs...)
		require.Len(t, got[0], publishers*each)
		require.Equal(t, got[0], got[1])
		require.Equal(t, got[0], got[2])
		slices.Sort(got[0])
		require.Len(t, slices.Compact(got[0]), publishers*each)
	})
}

func TestPolicies(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		topic := broadcast.New[int]()
		oldest, slow := topic.Subscribe(2, broadcast.DropOldest), topic.Subscribe(2, broadcast.DropSubscriber)
		for i := range 5 {
			require.NoError(t, topic.Publish(bg, i))
		}
		require.NoError(t, topic.Close())
		require.Equal(t, []int{3, 4}, collect(t, oldest, bg, nil))
		require.Equal(t, []int{0, 1}, collect(t, slow, bg, broadcast.ErrSlow))
		closed, stop := context.WithCancelCause(bg)
		stop(broadcast.ErrClosed)
		require.Empty(t, collect(t, oldest, closed, context.Canceled))
		for sub, want := range map[*broadcast.Subscription[int]]error{oldest: broadcast.ErrClosed, slow: broadcast.ErrSlow, topic.Subscribe(1, broadcast.Wait): suspend.ErrClosed} {
			_, err := sub.Recv(bg)
			require.ErrorIs(t, err, want)
			sub.Close()
			_, err = suspend.Do(bg, sub.RecvOp())
			require.Equal(t, broadcast.ErrClosed, err)
		}
		require.Equal(t, broadcast.ErrClosed, topic.Publish(bg, 1))
		require.Equal(t, broadcast.ErrClosed, topic.Close())
	})
	schedtest.Panics(t, "broadcast: Subscribe with a buffer for less than one value", func() { broadcast.New[int]().Subscribe(0, broadcast.Wait) })
	for _, policy := range []broadcast.Policy{-1, 4} {
		schedtest.Panics(t, "broadcast: unknown Policy", func() { broadcast.New[int]().Subscribe(1, policy) })
	}
}

// A Publish that waits ends in each possible way. The table has its result, and the values of the subscriptions afterwards. The
// result is that of the first of two waiting publishers.
func TestEndsOfAPublish(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(topic *broadcast.Topic[int], slow *broadcast.Subscription[int], cancel func())
		want error
		got  []int // the values of the subscription that was never full
	}{
		"cancelled": {func(_ *broadcast.Topic[int], slow *broadcast.Subscription[int], cancel func()) {
			cancel()
			_, _ = slow.Recv(bg)
		}, context.Canceled, []int{0, 2}},
		"too late": {func(_ *broadcast.Topic[int], slow *broadcast.Subscription[int], cancel func()) {
			_, _ = slow.Recv(bg)
			cancel()
		}, nil, []int{0, 1}},
		"the slow one leaves": {func(_ *broadcast.Topic[int], slow *broadcast.Subscription[int], _ func()) { slow.Close() }, nil, []int{0, 1, 2}},
		"closed":              {func(topic *broadcast.Topic[int], _ *broadcast.Subscription[int], _ func()) { _ = topic.Close() }, broadcast.ErrClosed, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				topic := broadcast.New[int]()
				slow, quick := topic.Subscribe(1, broadcast.Wait), topic.Subscribe(9, broadcast.Wait)
				require.NoError(t, topic.Publish(bg, 0))
				ctx, cancel := schedtest.WithCancel()
				got := errors.New("none")
				_ = s.Go(func() { got = topic.Publish(ctx, 1) })
				_ = s.Go(func() { _ = topic.Publish(bg, 2) })
				suspend.Yield()
				c.meet(topic, slow, cancel)
				schedtest.Settle()
				require.Equal(t, c.want == nil, got == nil)
				require.ErrorIs(t, got, c.want)
				_ = topic.Close()
				require.Equal(t, c.got, collect(t, quick, bg, nil))
			})
		})
	}
}

// Each subscriber that stays receives a value once if Publish returned nil, and no subscriber receives it if Publish failed.
func TestConservation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var published, failed, left atomic.Int64
		covered := func() bool { return published.Load() > 0 && failed.Load() > 0 && left.Load() > 0 }
		for round := 0; schedtest.More(round, 100, covered); round++ {
			const publishers, readers, each = 3, 3, 8
			topic := broadcast.New[int]()
			var gone atomic.Int32
			ok := make([]bool, publishers*each)
			got := make([][]int, readers)
			var subs []*broadcast.Subscription[int]
			for range readers {
				subs = append(subs, topic.Subscribe(1, broadcast.Wait))
			}
			leaver := topic.Subscribe(1, broadcast.Wait)
			schedtest.Stress(t, next, publishers+readers+1, func(i int, rng *rand.Rand) {
				switch {
				case i < publishers:
					for k := range each {
						ctx, cancel := schedtest.MayCancel(rng)
						if err := topic.Publish(ctx, i*each+k); err == nil {
							ok[i*each+k] = true
							published.Add(1)
						} else {
							failed.Add(1)
						}
						cancel()
					}
					if gone.Add(1) == publishers {
						_ = topic.Close()
					}
				case i < publishers+readers:
					for {
						ctx, cancel := schedtest.MayCancel(rng)
						v, err := subs[i-publishers].Recv(ctx)
						cancel()
						if err == nil {
							got[i-publishers] = append(got[i-publishers], v)
						} else if err == broadcast.ErrClosed {
							return
						}
					}
				default:
					for range rng.IntN(6) {
						if _, err := leaver.Recv(bg); err == nil {
							left.Add(1)
						}
					}
					leaver.Close()
				}
			})
			var want []int
			for v, ok := range ok {
				if ok {
					want = append(want, v)
				}
			}
			for i := range got {
				if i > 0 && !slices.Equal(got[i], got[0]) {
					t.Fatalf("%v and %v", got[0], got[i])
				}
			}
			sorted := slices.Sorted(slices.Values(got[0]))
			if !slices.Equal(sorted, want) {
				t.Fatalf("received %v of %v", sorted, want)
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		topic := broadcast.New[int]()
		sub := topic.Subscribe(1, broadcast.Wait)
		_ = s.Go(func() {
			for range sub.All(bg) {
			}
		})
		if got := testing.AllocsPerRun(100, func() { // the second Publish waits for room
			_, _ = topic.Publish(bg, 1), topic.Publish(bg, 2)
		}); got > 0 {
			t.Errorf("%v allocations", got)
		}
		_ = topic.Close()
	})
}

func Example() {
	_ = fifo.Run(bg, func(ctx context.Context) error {
		var news broadcast.Topic[string]
		for _, name := range []string{"ann", "bob"} {
			sub := news.Subscribe(16, broadcast.DropOldest)
			_ = suspend.Here().Go(func() {
				defer sub.Close()
				for headline, err := range sub.All(ctx) {
					if err != nil {
						break // ctx has ended
					}
					fmt.Println(name, "reads", headline)
				}
			})
		}
		_ = news.Publish(ctx, "hello")
		return news.Close()
	})
	// Output:
	// ann reads hello
	// bob reads hello
}

// A subscriber learns how many values it has missed, and where.
func ExampleLaggedError() {
	var prices broadcast.Topic[int]
	sub := prices.Subscribe(2, broadcast.Lag)
	for price := range 5 {
		_ = prices.Publish(bg, price)
	}
	_ = prices.Close()
	for {
		price, err := sub.Recv(bg)
		var lagged *broadcast.LaggedError
		switch {
		case errors.As(err, &lagged):
			fmt.Println("missed", lagged.Missed)
		case err != nil:
			fmt.Println(err)
			return
		default:
			fmt.Println(price)
		}
	}
	// Output:
	// missed 3
	// 3
	// 4
	// broadcast: closed
}

func ExampleTopic_Subscribers() {
	var prices broadcast.Topic[int]
	fmt.Println(prices.Subscribers()) // no task needs a price
	sub := prices.Subscribe(2, broadcast.Wait)
	fmt.Println(prices.Subscribers())
	sub.Close()
	fmt.Println(prices.Subscribers())
	// Output:
	// 0
	// 1
	// 0
}

func ExampleTopic_PublishOp() {
	var news broadcast.Topic[string]
	sub := news.Subscribe(1, broadcast.Wait)
	_, err := suspend.TrySelect(bg, suspend.CaseOf(news.PublishOp("first")))
	second, _ := suspend.TrySelect(bg, suspend.CaseOf(news.PublishOp("second"))) // the topic has no room
	first, _ := suspend.Do(bg, sub.RecvOp())
	fmt.Println(first, err, second)
	// Output: first <nil> <nil>
}

// Values are freed once they have been received or dropped, or their subscription is closed.
func TestNothingIsRetained(t *testing.T) {
	var objects schedtest.Objects
	topic := broadcast.New[*schedtest.Object]()
	received, dropped := topic.Subscribe(4, broadcast.Wait), topic.Subscribe(1, broadcast.DropOldest)
	closed, slow := topic.Subscribe(4, broadcast.Wait), topic.Subscribe(1, broadcast.DropSubscriber)
	func() {
		for range 3 {
			require.NoError(t, topic.Publish(bg, objects.New()))
		}
		for range 3 {
			_, err := received.Recv(bg)
			require.NoError(t, err)
		}
		for range 2 {
			closed.Close()
		}
		_, err := slow.Recv(bg)
		require.NoError(t, err)
		_, err = slow.Recv(bg)
		require.ErrorIs(t, err, broadcast.ErrSlow)
		require.NoError(t, topic.Publish(bg, nil)) // replaces the last value
	}()
	objects.Collected(t, 0)
	runtime.KeepAlive([]any{topic, received, dropped, closed, slow})
}

// collect returns the values of sub, whose iterator must end with the error want, or without an error.
func collect(t *testing.T, sub *broadcast.Subscription[int], ctx context.Context, want error) (vs []int) {
	t.Helper()
	var last error
	for v, err := range sub.All(ctx) {
		require.NoError(t, last, "a pair after the error")
		if last = err; err == nil {
			vs = append(vs, v)
		} else {
			require.Zero(t, v)
		}
	}
	require.Equal(t, want == nil, last == nil)
	require.ErrorIs(t, last, want)
	return vs
}

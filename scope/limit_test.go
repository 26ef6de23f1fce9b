package scope_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// At most n tasks are live at a time, all run, and those that wait begin in order.
func TestLimit(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		const n, tasks = 3, 200
		var live, most, ran atomic.Int64
		err := scope.Run(bg, func(_ context.Context, s *scope.Scope) error {
			limited := scope.Limit(n, on)
			for range tasks {
				s.Go(limited, func(context.Context) error {
					now := live.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					suspend.Yield()
					ran.Add(1)
					live.Add(-1)
					return nil
				})
			}
			return nil
		})
		if err != nil || ran.Load() != tasks || most.Load() > n {
			t.Errorf("Run = %v; %d of %d ran, up to %d at the same time", err, ran.Load(), tasks, most.Load())
		}
	})
}

// A task that ends by Goexit passes its place on. A function that the Limit has accepted runs even if the scheduler has closed.
func TestLimitGivesPlacesOn(t *testing.T) {
	var order []int
	refuse := false
	ended := make(chan struct{})
	limited := scope.Limit(1, spawnerFunc(func(f func()) error {
		if refuse {
			return suspend.ErrClosed
		}
		go f()
		return nil
	}))
	var gate promise.Promise[int]
	_ = limited.Go(func() { _, _ = gate.Await(bg); order = append(order, 0); runtime.Goexit() })
	_ = limited.Go(func() { order = append(order, 1) })
	_ = limited.Go(func() { order = append(order, 2); close(ended) })
	refuse = true
	_ = gate.Fill(1)
	<-ended
	if !slices.Equal(order, []int{0, 1, 2}) {
		t.Errorf("order %v", order)
	}
	schedtest.Eventually(t, "refused at once although a place is free", func() bool { return limited.Go(func() {}) != nil })
	schedtest.Panics(t, "scope: Limit with less than one task", func() { scope.Limit(0, suspend.Goroutines) })
	schedtest.Panics(t, "scope: nil function", func() { _ = limited.Go(nil) })
}

// If the scheduler refuses a function, or panics in Go, the place is free again.
func TestARefusedGoGivesItsPlaceBack(t *testing.T) {
	refuse := func(func()) error { return suspend.ErrClosed }
	var on func(func()) error
	limited := scope.Limit(1, spawnerFunc(func(f func()) error { return on(f) }))
	for _, on = range []func(func()) error{refuse, func(func()) error { panic("refused") }, refuse} {
		func() {
			defer func() { _ = recover() }()
			require.ErrorIs(t, limited.Go(func() { t.Error("it ran") }), suspend.ErrClosed)
		}()
	}
	ran := false
	on = func(f func()) error { f(); return nil }
	require.NoError(t, limited.Go(func() { ran = true }))
	require.True(t, ran)
}

// A call that waits for a place when another call fails is not begun.
func TestMapWithALimitBeginsNothingAfterAFailure(t *testing.T) {
	var begun atomic.Int64
	_, err := scope.Map(bg, scope.Limit(1, suspend.Goroutines), make([]int, 1000), func(context.Context, int) (int, error) {
		begun.Add(1)
		return 0, errOops
	})
	if err != errOops || begun.Load() != 1 {
		t.Errorf("Map = %v, %d begun", err, begun.Load())
	}
}

func numbers(n int) iter.Seq2[int, error] {
	return scope.Lift(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})
}

// The results come in order, with at most n calls ahead, whatever ends the loop. No call outlives the loop.
func TestStream(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		const n = 4
		for _, end := range []string{"all", "break", "error", "ctx", "panic"} {
			var live, ahead, most atomic.Int64
			ctx, cancel := context.WithCancel(bg)
			var got []int
			var last error
			func() {
				defer func() {
					if r := recover(); r != nil && r != "stop" {
						panic(r)
					}
				}()
				for v, err := range scope.Stream(ctx, on, n, numbers(50), func(ctx context.Context, i int) (int, error) {
					live.Add(1)
					defer live.Add(-1)
					most.Store(max(most.Load(), ahead.Add(1)))
					for range i % 7 {
						suspend.Yield()
					}
					if end == "error" && i == 20 {
						return 0, errOops
					}
					return i, suspend.Err(ctx)
				}) {
					ahead.Add(-1)
					if last = err; err != nil {
						continue
					}
					got = append(got, v)
					if v == 20 {
						switch end {
						case "break":
						case "ctx":
							cancel()
							continue
						case "panic":
							panic("stop")
						default:
							continue
						}
						break
					}
				}
			}()
			cancel()
			want := 21
			switch end {
			case "all":
				want = 50
			case "error":
				want = 20
			}
			var right []int
			for i := range want {
				right = append(right, i)
			}
			if !slices.Equal(got, right) || live.Load() != 0 || most.Load() > n {
				t.Errorf("%s: got %v, %d live, %d ahead", end, got, live.Load(), most.Load())
			}
			switch {
			case end == "error" && last != errOops, end == "ctx" && !errors.Is(last, context.Canceled),
				end != "error" && end != "ctx" && last != nil:
				t.Errorf("%s: last error %v", end, last)
			}
		}
	})
	schedtest.Panics(t, "scope: Stream with less than one task", func() {
		scope.Stream(bg, suspend.Goroutines, 0, numbers(1), func(context.Context, int) (int, error) { return 0, nil })
	})
}

func ExampleLimit() {
	four := scope.Limit(4, suspend.Goroutines)
	squares, err := scope.Map(context.Background(), four, []int{1, 2, 3}, func(_ context.Context, n int) (int, error) {
		return n * n, nil
	})
	fmt.Println(squares, err)
	// Output: [1 4 9] <nil>
}

func ExampleStream() {
	words := slices.Values([]string{"to", "be", "or", "not"})
	for n, err := range scope.Stream(context.Background(), suspend.Goroutines, 4, scope.Lift(words), func(_ context.Context, w string) (int, error) {
		return len(w), nil
	}) {
		fmt.Println(n, err)
	}
	// Output:
	// 2 <nil>
	// 2 <nil>
	// 2 <nil>
	// 3 <nil>
}

// An earlier result is not lost if a later call does not return.
func TestStreamWithACallThatExits(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		earlier := promise.New[int]()
		var got []int
		var last error
		for v, err := range scope.Stream(bg, s, 2, scope.Lift(slices.Values([]int{1, 2, 3})), func(ctx context.Context, i int) (int, error) {
			if i == 2 {
				defer func() { _ = earlier.Fill(i - 1) }()
				runtime.Goexit()
			}
			v, err := earlier.Await(bg)
			suspend.Yield()
			return v, err
		}) {
			if last = err; err == nil {
				got = append(got, v)
			}
		}
		require.Equal(t, []int{1}, got)
		require.ErrorIs(t, last, suspend.ErrAbandoned)
	})
}

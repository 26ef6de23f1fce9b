package scope_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

func same(_ context.Context, i int) (int, error) { return i, nil }

// inBubbles runs f on a goroutine and in a task of fifo, each in a bubble.
func inBubbles(t *testing.T, f func(t *testing.T, here suspend.Spawner)) {
	t.Run("goroutine", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, suspend.Goroutines) })
	})
	t.Run("fifo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, fifo.Run(bg, func(context.Context) error { f(t, suspend.Here()); return nil }))
		})
	})
}

// A result is passed on as soon as it is ready. If it waited for n further values, a stream of one value a minute would deliver
// it four minutes late.
func TestStreamYieldsWhatIsReady(t *testing.T) {
	inBubbles(t, func(t *testing.T, here suspend.Spawner) {
		in, begun, next := chanx.New[int](0), time.Now(), 0
		require.NoError(t, here.Go(func() {
			for i := range 8 {
				_ = in.Send(bg, i)
				_ = suspend.Sleep(bg, time.Minute)
			}
			_ = in.Close()
		}))
		for v, err := range scope.Stream(bg, here, 4, in.All(bg), same) {
			require.NoError(t, err)
			require.Equal(t, next, v)
			require.Equal(t, time.Duration(v)*time.Minute, time.Since(begun))
			next++
		}
		require.Equal(t, 8, next)
	})
}

// The sender of the input sends its next value only after the answer to the last one.
func TestStreamAnswersItsInput(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		in, out := chanx.New[int](0), chanx.New[int](0)
		schedtest.Run(t, on, func() {
			for v, err := range scope.Stream(bg, on, 2, in.All(bg), same) {
				require.NoError(t, err)
				_ = out.Send(bg, v)
			}
		}, func() {
			for i := range 20 {
				_ = in.Send(bg, i)
				v, _ := out.Recv(bg)
				require.Equal(t, i, v)
			}
			_ = in.Close()
		})
	})
}

// The iteration ends at once although its input waits. The wait of the input is cancelled and takes no value. Its deferred
// functions run, and may wait.
func TestStreamEndsWithoutItsInput(t *testing.T) {
	for _, how := range []string{"error", "break", "panic", "ctx"} {
		inBubbles(t, func(t *testing.T, here suspend.Spawner) {
			in, begun, left := chanx.New[int](1), time.Now(), false
			_ = in.Send(bg, 1)
			seq := func(yield func(int, error) bool) {
				defer func() {
					_ = suspend.Sleep(bg, time.Second)
					left = true
				}()
				in.All(bg)(yield)
			}
			ctx, stop := context.WithCancel(bg)
			defer stop()
			var last error
			func() {
				defer func() { _ = recover() }()
				for _, err := range scope.Stream(ctx, here, 4, seq, func(context.Context, int) (int, error) {
					if how == "error" {
						return 0, errOops
					}
					return 1, nil
				}) {
					switch last = err; how {
					case "break":
						return
					case "panic":
						panic("oops")
					case "ctx":
						stop()
					}
				}
			}()
			require.True(t, left)
			require.Equal(t, time.Second, time.Since(begun))
			switch how {
			case "error":
				require.Equal(t, errOops, last)
			case "ctx":
				require.ErrorIs(t, last, context.Canceled)
			}
			require.NoError(t, in.Send(bg, 2))
			v, ok, _ := in.TryRecv()
			require.True(t, ok, "the input has received it")
			require.Equal(t, 2, v)
		})
	}
}

// If the input ends because ctx has ended, the iteration ends with the error. Otherwise this would look like the end of the data.
func TestStreamHasTheReasonOfItsEnd(t *testing.T) {
	inBubbles(t, func(t *testing.T, here suspend.Spawner) {
		ctx, stop := context.WithTimeout(bg, time.Minute)
		defer stop()
		in, n, last := chanx.New[int](0), 0, error(nil)
		for _, err := range scope.Stream(ctx, here, 3, in.All(ctx), same) {
			last = err
			n++
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)
		require.Equal(t, 1, n)

		last = nil
		quiet := func(func(int, error) bool) { <-ctx.Done() } // returns before Stream has looked at ctx
		for _, err := range scope.Stream(ctx, here, 3, quiet, same) {
			last = err
		}
		require.ErrorIs(t, last, context.DeadlineExceeded)

		last = nil
		manual := manual{bg, make(chan struct{})}
		ends := func(func(int, error) bool) { close(manual.done) } // the contexts of the Stream do not know of the end yet
		for _, err := range scope.Stream(manual, here, 3, ends, same) {
			last = err
		}
		require.ErrorIs(t, last, context.Canceled)
	})
}

// manual is a context that ends when done is closed. Its children learn of this later.
type manual struct {
	context.Context
	done chan struct{}
}

func (m manual) Done() <-chan struct{} { return m.done }

func (m manual) Err() error {
	select {
	case <-m.done:
		return context.Canceled
	default:
		return nil
	}
}

// As many calls run in parallel as the limit allows.
func TestStreamCallsBesideEachOther(t *testing.T) {
	inBubbles(t, func(t *testing.T, here suspend.Spawner) {
		const n = 3
		b, got := latch.NewBarrier(n), 0
		for i, err := range scope.Stream(bg, here, n, numbers(2*n), func(ctx context.Context, i int) (int, error) {
			_, err := b.Wait(ctx)
			return i, err
		}) {
			require.NoError(t, err)
			require.Equal(t, got, i)
			got++
		}
		require.Equal(t, 2*n, got)
	})
}

// A panic or exit of the input reaches the caller of the iterator, both at once and when the loop ends the input.
func TestStreamOfAnInputThatPanics(t *testing.T) {
	for _, exits := range []bool{false, true} {
		for name, in := range map[string]iter.Seq[int]{
			"at once":        func(func(int) bool) { end(exits) },
			"after a value":  func(yield func(int) bool) { yield(1); end(exits) },
			"at its own end": func(yield func(int) bool) { yield(1); end(exits) },
			"in a wait": func(yield func(int) bool) {
				defer func() {
					if !exits {
						panic("oops")
					}
				}()
				_ = yield(1) && suspend.Sleep(bg, time.Hour) == nil
				runtime.Goexit()
			},
			"in an iteration": func(yield func(int) bool) {
				slices.Values([]int{1, 2, 3})(func(i int) bool { yield(i); end(exits); return true })
			},
		} {
			schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
				var caught any
				exited := true
				var live atomic.Int32
				schedtest.Run(t, on, func() {
					defer func() {
						if caught = recover(); caught != nil {
							exited = false
						}
					}()
					for range scope.Stream(bg, on, 2, scope.Lift(in), func(ctx context.Context, i int) (int, error) {
						defer live.Add(-1)
						live.Add(1)
						if name == "at its own end" || name == "in a wait" {
							return i, nil
						}
						return i, suspend.Sleep(ctx, time.Hour)
					}) {
						break
					}
					exited = false
				})
				require.Zero(t, live.Load())
				if name == "in a wait" && exits { // its wait, too, ends by an exit
					require.False(t, exited)
					return
				}
				require.Equal(t, exits, exited, name)
				if !exits {
					require.Equal(t, "oops", caught, name)
				}
			})
		}
	}
}

func end(exit bool) {
	if exit {
		runtime.Goexit()
	}
	panic("oops")
}

// The end of the iteration does not cancel a wait under a Shield, such as the wait for the lock of a Cond.
func TestStreamKeepsAShield(t *testing.T) {
	inBubbles(t, func(t *testing.T, here suspend.Spawner) {
		var m mutex.Mutex
		locked := false
		require.True(t, m.TryLock())
		in := func(yield func(int) bool) {
			if yield(1) {
				suspend.Shield(func() { locked = m.LockContext(bg) == nil })
				_ = suspend.Sleep(bg, time.Hour)
			}
		}
		require.NoError(t, here.Go(func() { _ = suspend.Sleep(bg, time.Minute); m.Unlock() }))
		begun := time.Now()
		for range scope.Stream(bg, here, 2, scope.Lift(in), func(ctx context.Context, _ int) (int, error) { return 0, suspend.Sleep(ctx, time.Second) }) {
			break
		}
		require.True(t, locked)
		require.Equal(t, time.Minute, time.Since(begun))
	})
}

// If the input has a value, it runs only while the caller waits: the loop body is the only other task of the fifo scheduler.
func TestTheInputOfAStreamIsPaused(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		pulled, body := 0, false
		in := func(yield func(int) bool) {
			for i := range 20 {
				require.False(t, body, "the input runs while the loop body runs")
				pulled++
				if !yield(i) {
					return
				}
			}
		}
		seen := 0
		for range scope.Stream(bg, s, 3, scope.Lift(in), same) {
			body = true
			schedtest.Settle()
			body = false
			seen++
			require.LessOrEqual(t, pulled, seen+4, "three calls, and the next value")
		}
		require.Equal(t, 20, seen)
	})
}

// A node crashes while the input, the calls or the loop body wait.
func TestStreamOfANodeThatCrashes(t *testing.T) {
	for at := range 30 {
		ended := 0
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			n := w.Node("n")
			require.NoError(t, n.Go(func() {
				defer func() { ended++ }()
				in := func(yield func(int) bool) {
					defer func() { ended++ }()
					for i := 0; suspend.Sleep(bg, 7*time.Millisecond) == nil && yield(i); i++ {
					}
				}
				for range scope.Stream(bg, suspend.Here(), 2, scope.Lift(in), func(ctx context.Context, i int) (int, error) { return i, suspend.Sleep(ctx, 5*time.Millisecond) }) {
					_ = suspend.Sleep(bg, 3*time.Millisecond)
				}
			}))
			if err := suspend.Sleep(ctx, time.Duration(at)*time.Millisecond); err != nil {
				return err
			}
			n.Crash()
			return suspend.Sleep(ctx, time.Second)
		}, simulation.Options{Seed: 1})
		require.NoError(t, r.Err)
		require.Contains(t, []int{0, 1, 2}, ended)
		if at > 10 {
			require.Equal(t, 2, ended, at)
		}
	}
}

// A call that is refused is an error in its place, after the earlier results.
func TestStreamIsRefused(t *testing.T) {
	closed := fifo.New(fifo.Options{})
	require.NoError(t, closed.Run(bg, func(context.Context) error { return nil }))
	left := 2
	on := spawnerFunc(func(f func()) error {
		if left--; left < 0 {
			return closed.Go(f)
		}
		return suspend.Goroutines.Go(f)
	})
	var got []int
	var last error
	for v, err := range scope.Stream(bg, on, 3, numbers(9), same) {
		if last = err; err == nil {
			got = append(got, v)
		}
	}
	require.Equal(t, []int{0, 1}, got)
	require.True(t, errors.Is(last, suspend.ErrClosed), last)
}

// A source that fails ends the iteration with its error, after the results of the values before. Without this, a variable
// would have to carry the error.
func TestStreamOfASourceThatFails(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		for n := range 3 {
			schedtest.Run(t, on, func() {
				ended := false
				in := func(yield func(int, error) bool) {
					defer func() { ended = true }()
					for i := range n {
						if !yield(i, nil) {
							return
						}
					}
					if yield(7, errOops) {
						t.Error("continues after its error")
					}
				}
				var got []int
				var last error
				for v, err := range scope.Stream(bg, on, 2, in, func(ctx context.Context, i int) (int, error) {
					for range 3 - i { // the error of the source comes before the results
						suspend.Yield()
					}
					require.NotEqual(t, 7, i)
					return i, suspend.Err(ctx)
				}) {
					require.NoError(t, last, "a pair after the error")
					require.False(t, ended, "the sequence ends with the iteration")
					if last = err; err == nil {
						got = append(got, v)
					}
				}
				require.Equal(t, errOops, last)
				require.Len(t, got, n)
				require.True(t, ended)
			})
		}
	})
}

// The failure of an earlier call is reported, even if a later call fails first.
func TestStreamHasTheFirstFailureOfTheSequence(t *testing.T) {
	inBubbles(t, func(t *testing.T, here suspend.Spawner) {
		in := func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, context.DeadlineExceeded) }
		for _, err := range scope.Stream(bg, here, 2, in, func(ctx context.Context, _ int) (int, error) {
			require.NoError(t, suspend.Sleep(ctx, time.Minute))
			return 0, errOops
		}) {
			require.Equal(t, errOops, err)
		}
	})
}

// The iteration over a channel that was closed with an error ends with this error. Otherwise it would look like a complete
// channel.
func TestStreamOfAChannel(t *testing.T) {
	for _, want := range []error{nil, errOops} {
		inBubbles(t, func(t *testing.T, here suspend.Spawner) {
			in := chanx.New[int](3)
			_, _, _ = in.Send(bg, 0), in.Send(bg, 1), in.CloseWith(want)
			n := 0
			var last error
			for v, err := range scope.Stream(bg, here, 2, in.All(bg), same) {
				if last = err; err == nil {
					require.Equal(t, n, v)
					n++
				}
			}
			require.Equal(t, 2, n)
			require.Equal(t, want, last)
		})
	}
}

func TestLift(t *testing.T) {
	for n := range 4 {
		i := 0
		for v, err := range scope.Lift(slices.Values([]int{0, 1, 2})) {
			require.NoError(t, err)
			require.Equal(t, i, v)
			if i++; i == n {
				break
			}
		}
		require.Equal(t, max(n, 3*(1-n)), i) // n values, or all
	}
}

// An input runs in a task of its own, not in that of the function that ranges over the Stream, but it has the context of that function.
func TestAnInputThatNeedsTheValueOfItsReader(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, on suspend.Spawner) {
		stream := func(ctx context.Context, get func(ctx context.Context) (int, error)) (err error) {
			in := func(yield func(int, error) bool) { yield(get(ctx)) }
			for _, err = range scope.Stream(ctx, on, 1, in, same) {
			}
			return err
		}
		var l *lazy.Lazy[int]
		l = lazy.New(func(ctx context.Context) (int, error) { return 0, stream(ctx, l.Force) }, lazy.Restart)
		_, err := l.Force(bg)
		require.ErrorIs(t, err, lazy.ErrRecursive)

		var c *keyed.Cache[string, int]
		get := func(ctx context.Context) (int, error) { return c.Get(ctx, "key") }
		c = keyed.NewCache(func(ctx context.Context, _ string) (int, error) { return 0, stream(ctx, get) }, keyed.CacheOptions{})
		_, err = get(bg)
		require.ErrorIs(t, err, keyed.ErrRecursive)
	})
}

package promise_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

var errOops = errors.New("oops")

func three() (ps [3]*promise.Promise[int], fs []promise.Future[int]) {
	for i := range ps {
		ps[i] = promise.New[int]()
		fs = append(fs, ps[i])
	}
	return ps, fs
}

// combinations are All, Any and Race, with the result as text.
var combinations = []struct {
	name string
	of   func(fs ...promise.Future[int]) suspend.Op[string]
}{
	{"All", func(fs ...promise.Future[int]) suspend.Op[string] {
		return suspend.Map(promise.All(fs...), text[[]int])
	}},
	{"Any", func(fs ...promise.Future[int]) suspend.Op[string] { return suspend.Map(promise.Any(fs...), text[int]) }},
	{"Race", func(fs ...promise.Future[int]) suspend.Op[string] { return suspend.Map(promise.Race(fs...), text[int]) }},
}

func text[T any](v T, err error) (string, error) {
	if err != nil {
		return fmt.Sprintf("%q", err), nil
	}
	return fmt.Sprint(v), nil
}

// now performs op if it is ready.
func now(t *testing.T, op suspend.Op[string]) string {
	c := suspend.CaseOf(op)
	won, err := suspend.TrySelect(bg, c)
	require.NoError(t, err)
	if won == nil {
		return "waits"
	}
	return c.Value()
}

// The first word is the result of a task that waits from the beginning, and the others are the immediate results after each step.
// If several futures are filled, the first one in the arguments counts.
func TestCombinations(t *testing.T) {
	for _, test := range []struct {
		order []int // the futures in the order in which they end: i is filled with 10+i, ^i fails
		want  [3]string
	}{
		{[]int{1, 2, 0}, [3]string{"waits waits waits [10 11 12]", "waits 11 11 10", "waits 11 11 10"}},
		{[]int{^2, 0, ^1}, [3]string{`waits "2" "2" "1"`, "waits waits 10 10", `waits "2" 10 10`}},
		{[]int{0, ^1, 2}, [3]string{`waits waits "1" "1"`, "waits 10 10 10", "waits 10 10 10"}},
		{[]int{^2, ^0, ^1}, [3]string{`waits "2" "0" "0"`, `waits waits waits "0\n1\n2"`, `waits "2" "0" "0"`}},
	} {
		for which, c := range combinations {
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				ps, fs := three()
				op := c.of(fs...)
				waits := promise.Go(bg, s, func(ctx context.Context) (string, error) { return suspend.Do(ctx, op) })
				schedtest.Eventually(t, "it follows", func() bool { return promise.Following(ps[2]) == 1 })
				got, first := now(t, op), ""
				for _, i := range test.order {
					if i < 0 {
						_ = ps[^i].Fail(fmt.Errorf("%d", ^i))
					} else {
						_ = ps[i].Fill(10 + i)
					}
					v := now(t, op)
					if got += " " + v; first == "" && v != "waits" {
						first = v
					}
				}
				v, err := waits.Await(bg)
				require.NoError(t, err)
				require.Equal(t, first, v, "waiting, %s of %v", c.name, test.order)
				require.Equal(t, test.want[which], got, "%s of %v", c.name, test.order)
			})
		}
	}
	for i, want := range []string{"[]", `"promise: abandoned"`, `"promise: abandoned"`} {
		require.Equal(t, want, now(t, combinations[i].of()), "%s of nothing", combinations[i].name)
	}
}

// In all orders of the Fills, the three combinations agree with the values.
func TestCombinationsUnderRaces(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		for range 100 {
			ps, fs := three()
			fails := rand.IntN(3)
			schedtest.Stress(t, next, 6, func(i int, _ *rand.Rand) {
				switch {
				case i < fails:
					_ = ps[i].Fail(fmt.Errorf("%d", i))
				case i < 3:
					_ = ps[i].Fill(i)
				case i == 3:
					v, err := suspend.Do(bg, promise.All(fs...))
					if (err != nil) != (fails > 0) || err == nil && !slices.Equal(v, []int{0, 1, 2}) {
						t.Errorf("%d failed: All = %v, %v", fails, v, err)
					}
				case i == 4:
					if v, err := suspend.Do(bg, promise.Any(fs...)); err != nil || v < fails {
						t.Errorf("%d failed: Any = %v, %v", fails, v, err)
					}
				default:
					if v, err := suspend.Do(bg, promise.Race(fs...)); err != nil && fails == 0 || err == nil && v < fails {
						t.Errorf("%d failed: Race = %v, %v", fails, v, err)
					}
				}
			})
			for i, p := range ps {
				require.Zero(t, promise.Following(p), i)
			}
		}
	})
}

// An operation that is not performed follows no future, and an operation that has ended follows none, however it ended.
func TestACombinationLeavesNothingBehind(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		for _, c := range combinations {
			long := promise.New[int]() // never filled
			op := c.of(long, promise.New[int]())
			follows := func(want int, when string) {
				t.Helper()
				require.Equal(t, want, promise.Following(long), "%s, %s", c.name, when)
			}
			require.Equal(t, "waits", now(t, op))
			follows(0, "not ready")

			ctx, end := cancel.New(bg)
			_ = s.Go(func() { follows(1, "it waits"); end(errOops) })
			_, err := suspend.Do(ctx, op)
			require.ErrorIs(t, err, errOops)
			follows(0, "cancelled")

			won, other := promise.New[int](), 0
			_ = s.Go(func() { follows(1, "a case"); _ = won.Fill(1) })
			_, err = suspend.Select(bg, suspend.CaseOf(op), suspend.CaseOf(won.AwaitOp()))
			require.NoError(t, err)
			follows(0, "another case was performed")

			ctx, end = cancel.New(bg)
			suspend.Then(ctx, op, s, func(string, error) { other++ })
			follows(1, "a continuation")
			end(nil)
			schedtest.Settle()
			require.Equal(t, 1, other)
			follows(0, "a continuation that was cancelled")

			first := promise.New[int]()
			_ = first.Fail(errOops) // Any waits for the next one
			second := promise.New[int]()
			_ = s.Go(func() { suspend.Yield(); _ = second.Fill(1) })
			_, err = suspend.Do(bg, c.of(long, first, second, promise.New[int]())) // All fails at once
			require.NoError(t, err)
			follows(0, "performed")
		}
	})
}

// A Select looks at the combination again because a transaction in the same Select asks for that. A future must not be counted twice.
func TestACombinationIsLookedAtAgain(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ps, fs := three()
		var v stm.Var[int]
		runs, all := 0, suspend.CaseOf(promise.All(fs...))
		ended := promise.Go(bg, s, func(ctx context.Context) (suspend.Selectable, error) {
			return suspend.Select(ctx, all, suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) {
				runs++
				return v.Get(tx), stm.Retry
			})))
		})
		for i, p := range ps {
			schedtest.Settle()
			require.Equal(t, i+1, runs)
			_, filled, _ := ended.Try()
			require.False(t, filled)
			_ = p.Fill(i)
			_, _ = stm.Try(func(tx *stm.Tx) error { v.Set(tx, i); return nil })
		}
		won, err := ended.Await(bg)
		require.NoError(t, err)
		require.Equal(t, suspend.Selectable(all), won)
		require.Equal(t, []int{0, 1, 2}, all.Value())
	})
}

// Followers are woken in the order of their registration. Otherwise one seed would have several orders of tasks.
func TestFollowersAreToldInTheirOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		first := promise.New[int]()
		var got, want []int
		for i := range 12 {
			suspend.Then(bg, combinations[i%3].of(first), s, func(string, error) { got = append(got, i) })
			want = append(want, i)
		}
		_ = first.Fill(1)
		schedtest.Settle()
		require.Equal(t, want, got)
	})
}

// The combinations copy the slice of the caller, who may change it.
func TestCombinationsKeepNoSliceOfTheCaller(t *testing.T) {
	for _, c := range combinations {
		ps, fs := three()
		op := c.of(fs...)
		require.NotContains(t, fs, nil)
		clear(fs)
		for i, p := range ps {
			_ = p.Fill(i)
		}
		require.NotEqual(t, "waits", now(t, op))
	}
}

func TestNilFuture(t *testing.T) {
	for _, none := range []promise.Future[int]{nil, (*promise.Promise[int])(nil)} {
		for _, c := range combinations {
			schedtest.Panics(t, "promise: nil Future", func() { c.of(promise.New[int](), none) })
		}
	}
}

func TestGo(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		if v, err := promise.Go(bg, s, func(context.Context) (int, error) { suspend.Yield(); return 3, errOops }).Await(bg); v != 3 || err != errOops {
			t.Errorf("Go = %d, %v", v, err)
		}
		p := promise.Go(bg, s, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
		if _, err := p.Await(bg); !errors.Is(err, suspend.ErrAbandoned) {
			t.Errorf("Go = %v after a Goexit", err)
		}
	})
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	_ = s.Run(bg, func(ctx context.Context) error {
		if _, err := promise.Go(ctx, s, func(context.Context) (int, error) { panic("oops") }).Await(ctx); !errors.Is(err, suspend.ErrAbandoned) || err.Error() != "promise: abandoned: panic: oops" {
			t.Errorf("Go = %v after a panic", err)
		} else if p := (*suspend.PanicError)(nil); !errors.As(err, &p) || p.Value != "oops" || !strings.Contains(string(p.Stack), "combine_test.go") {
			t.Errorf("Go = %v after a panic", err)
		}
		return nil
	})
	if _, err := promise.Go(bg, s, func(context.Context) (int, error) { return 1, nil }).Await(bg); !errors.Is(err, suspend.ErrClosed) {
		t.Errorf("Go on a closed scheduler = %v", err)
	}
}

func TestAwaitOp(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ps, _ := three()
		a, b := suspend.CaseOf(ps[0].AwaitOp()), suspend.CaseOf(ps[1].AwaitOp())
		_ = s.Go(func() { _ = ps[1].Resolve(5, errOops) })
		won, err := suspend.Select(bg, a, b)
		if v, e := b.Result(); won != suspend.Selectable(b) || err != nil || v != 5 || e != errOops {
			t.Errorf("Select = %v, %v, result %d, %v", won, err, v, e)
		}
		if won, err := suspend.TrySelect(bg, a); won != nil || err != nil {
			t.Errorf("TrySelect = %v, %v", won, err)
		}
	})
}

func ExampleAll() {
	_ = fifo.Run(bg, func(ctx context.Context) error {
		square := func(n int) promise.Future[int] {
			return promise.Go(ctx, suspend.Here(), func(context.Context) (int, error) { return n * n, nil })
		}
		squares, err := suspend.Do(ctx, promise.All(square(1), square(2), square(3)))
		fmt.Println(squares, err)
		return nil
	})
	// Output: [1 4 9] <nil>
}

func ExampleAny() {
	broken, fine := promise.New[int](), promise.New[int]()
	_ = broken.Fail(errOops)
	_ = fine.Fill(1)
	fmt.Println(suspend.Do(bg, promise.Any(broken, fine)))
	// Output: 1 <nil>
}

func ExampleRace() {
	broken, late := promise.New[int](), promise.New[int]()
	_ = broken.Fail(errOops)
	fmt.Println(suspend.Do(bg, promise.Race(broken, late)))
	// Output: 0 oops
}

func ExampleGo() {
	p := promise.Go(bg, suspend.Goroutines, func(context.Context) (int, error) { return 6 * 7, nil })
	fmt.Println(p.Await(bg))
	// Output: 42 <nil>
}

// Go panics in its caller. A panic in the task would end the process.
func TestGoOfNilPanicsAtOnce(t *testing.T) {
	schedtest.Panics(t, "promise: Go with a nil function", func() { promise.Go[int](bg, suspend.Goroutines, nil) })
}

// A nil Spawner means plain goroutines.
func TestGoOnANilSpawner(t *testing.T) {
	schedtest.OnFIFO(t, func(*fifo.Scheduler) { // in a scheduler, so that a task would not be a plain goroutine
		task, err := promise.Go(bg, nil, func(context.Context) (suspend.Task, error) { return suspend.Current(), nil }).Await(bg)
		if task != nil || err != nil {
			t.Errorf("a %T, %v", task, err)
		}
	})
}

package promise_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
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

func TestAll(t *testing.T) {
	ps, fs := three()
	_ = ps[1].Fill(11)
	all := promise.All(fs...)
	_ = ps[2].Fill(12)
	if _, ok, _ := all.Try(); ok {
		t.Error("filled too early")
	}
	_ = ps[0].Fill(10)
	if v, ok, err := all.Try(); !slices.Equal(v, []int{10, 11, 12}) || err != nil || !ok {
		t.Errorf("All = %v, %v, %v", v, err, ok)
	}

	ps, fs = three()
	all = promise.All(fs...)
	_ = ps[2].Fail(errOops)
	if _, ok, err := all.Try(); err != errOops || !ok {
		t.Errorf("a failure was not passed on at once: %v, %v", err, ok)
	}
	_ = ps[0].Fill(1)
	_ = ps[1].Fail(errors.New("late"))

	if v, ok, err := promise.All[int]().Try(); v != nil || err != nil || !ok {
		t.Errorf("All of nothing = %v, %v, %v", v, err, ok)
	}
}

func TestAny(t *testing.T) {
	ps, fs := three()
	any := promise.Any(fs...)
	_ = ps[0].Fail(errOops)
	if _, ok, _ := any.Try(); ok {
		t.Error("decided by a failure")
	}
	_ = ps[2].Fill(12)
	if v, ok, err := any.Try(); v != 12 || err != nil || !ok {
		t.Errorf("Any = %v, %v, %v", v, err, ok)
	}
	ps, fs = three()
	any = promise.Any(fs...)
	errs := []error{errOops, errors.New("second"), errors.New("third")}
	for _, i := range []int{2, 0, 1} {
		_ = ps[i].Fail(errs[i])
	}
	_, ok, err := any.Try()
	for _, e := range errs {
		if !ok || !errors.Is(err, e) {
			t.Errorf("Any of failures = %v, %v", err, ok)
		}
	}
	if _, ok, err := promise.Any[int]().Try(); err != promise.ErrAbandoned || !ok {
		t.Errorf("Any of nothing = %v, %v", err, ok)
	}
}

func TestRace(t *testing.T) {
	ps, fs := three()
	race := promise.Race(fs...)
	_ = ps[1].Fail(errOops)
	_ = ps[0].Fill(1)
	if _, ok, err := race.Try(); err != errOops || !ok {
		t.Errorf("Race = %v, %v", err, ok)
	}
	ps, fs = three()
	_ = ps[2].Fill(12)
	if v, ok, _ := promise.Race(fs...).Try(); v != 12 || !ok {
		t.Errorf("Race = %v, %v", v, ok)
	}
	if _, ok, err := promise.Race[int]().Try(); err != promise.ErrAbandoned || !ok {
		t.Errorf("Race of nothing = %v, %v", err, ok)
	}
}

// A combination that is decided is not kept alive by the futures that it no longer needs.
func TestCombinationsLetGo(t *testing.T) {
	ps, fs := three()
	gone := make(chan struct{})
	func() {
		race := promise.Race(fs...)
		all := promise.All(fs...)
		runtime.AddCleanup(race, func(struct{}) { close(gone) }, struct{}{})
		_ = ps[0].Fail(errOops)
		if _, ok, _ := all.Try(); !ok {
			t.Error("not decided")
		}
	}()
	defer schedtest.Within(t, schedtest.Deadline)()
	for {
		runtime.GC()
		select {
		case <-gone:
			runtime.KeepAlive(ps)
			return
		default:
			runtime.Gosched()
		}
	}
}

// Under all orders of filling, all three combinations agree with the values.
func TestCombinationsUnderRaces(t *testing.T) {
	for range 300 {
		ps, fs := three()
		var wg sync.WaitGroup
		fails := rand.IntN(3)
		for i, p := range ps {
			wg.Go(func() {
				if i < fails {
					_ = p.Fail(fmt.Errorf("%d", i))
				} else {
					_ = p.Fill(i)
				}
			})
		}
		all, any, race := promise.All(fs...), promise.Any(fs...), promise.Race(fs...)
		wg.Wait()
		v, err := all.Await(bg)
		if (err != nil) != (fails > 0) || err == nil && !slices.Equal(v, []int{0, 1, 2}) {
			t.Fatalf("%d failed: All = %v, %v", fails, v, err)
		}
		if v, err := any.Await(bg); err != nil || v < fails {
			t.Fatalf("%d failed: Any = %v, %v", fails, v, err)
		}
		if _, err := race.Await(bg); err != nil && fails == 0 {
			t.Fatalf("Race = %v", err)
		}
	}
}

func TestGo(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		if v, err := promise.Go(bg, s, func(context.Context) (int, error) { suspend.Yield(); return 3, errOops }).Await(bg); v != 3 || err != errOops {
			t.Errorf("Go = %d, %v", v, err)
		}
		p := promise.Go(bg, s, func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
		if _, err := p.Await(bg); err != promise.ErrAbandoned {
			t.Errorf("Go = %v after a Goexit", err)
		}
	})
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) {}})
	_ = s.Run(bg, func(ctx context.Context) error {
		if _, err := promise.Go(ctx, s, func(context.Context) (int, error) { panic("oops") }).Await(ctx); err != promise.ErrAbandoned {
			t.Errorf("Go = %v after a panic", err)
		}
		return nil
	})
	if _, err := promise.Go(bg, s, func(context.Context) (int, error) { return 1, nil }).Await(bg); err != suspend.ErrClosed {
		t.Errorf("Go on a closed scheduler = %v", err)
	}
}

func TestAwaitOp(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		ps, _ := three()
		a, b := suspend.On(ps[0].AwaitOp()), suspend.On(ps[1].AwaitOp())
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
		squares, err := promise.All(square(1), square(2), square(3)).Await(ctx)
		fmt.Println(squares, err)
		return nil
	})
	// Output: [1 4 9] <nil>
}

func ExampleAny() {
	broken, fine := promise.New[int](), promise.New[int]()
	first := promise.Any(broken, fine)
	_ = broken.Fail(errOops)
	_ = fine.Fill(1)
	fmt.Println(first.Await(bg))
	// Output: 1 <nil>
}

func ExampleRace() {
	broken, fine := promise.New[int](), promise.New[int]()
	first := promise.Race(broken, fine)
	_ = broken.Fail(errOops)
	_ = fine.Fill(1)
	fmt.Println(first.Await(bg))
	// Output: 0 oops
}

func ExampleGo() {
	p := promise.Go(bg, suspend.Goroutines, func(context.Context) (int, error) { return 6 * 7, nil })
	fmt.Println(p.Await(bg))
	// Output: 42 <nil>
}

// A chain is as long as memory allows, and not as the stack does.
func TestLongChain(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20))
	first := promise.New[int]()
	last := first
	for range 100_000 {
		last = promise.Race(last)
	}
	_ = first.Fill(1)
	if v, ok, err := last.Try(); v != 1 || err != nil || !ok {
		t.Errorf("Try = %d, %v, %v", v, err, ok)
	}
}

// The panic was that of a task, on the scheduler, and ended the process.
func TestGoOfNilPanicsAtOnce(t *testing.T) {
	schedtest.Panics(t, "promise: Go without a Spawner or a function", func() { promise.Go[int](bg, suspend.Goroutines, nil) })
	schedtest.Panics(t, "promise: Go without a Spawner or a function", func() {
		promise.Go(bg, nil, func(context.Context) (int, error) { return 1, nil })
	})
}

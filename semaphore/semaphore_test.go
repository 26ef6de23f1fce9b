package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

// free acquires all free permits, releases them, and returns their number.
func free(s *semaphore.Semaphore, size int64) int64 {
	for n := size; n > 0; n-- {
		if s.TryAcquire(n) {
			s.Release(n)
			return n
		}
	}
	return 0
}

func TestAtMostSoMany(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const size, tasks = 5, 12
		sem := semaphore.New(size)
		var inside atomic.Int64
		fs := make([]func(), tasks)
		for i := range fs {
			fs[i] = func() {
				n := int64(i%size + 1)
				for k := range 300 {
					if err := sem.Acquire(bg, n); err != nil {
						t.Error(err)
					}
					if now := inside.Add(n); now > size {
						t.Errorf("%d permits of %d are out", now, size)
					}
					if k%5 == 0 {
						suspend.Yield()
					}
					inside.Add(-n)
					sem.Release(n)
				}
			}
		}
		schedtest.Run(t, s, fs...)
		if n := free(sem, size); n != size {
			t.Errorf("%d of %d are free in the end", n, size)
		}
	})
}

func TestTryAcquire(t *testing.T) {
	sem := semaphore.New(3)
	if !sem.TryAcquire(2) || sem.TryAcquire(2) || !sem.TryAcquire(1) || sem.TryAcquire(1) || !sem.TryAcquire(0) {
		t.Error("2, not 2, 1, not 1, 0 of 3")
	}
	sem.Release(3)
	if sem.TryAcquire(4) || !sem.TryAcquire(3) {
		t.Error("not 4, 3 of 3")
	}
	if err := sem.Acquire(bg, 0); err != nil {
		t.Error(err)
	}
	if sem := semaphore.New(math.MaxInt64); !sem.TryAcquire(math.MaxInt64) || sem.TryAcquire(1) {
		t.Error("the largest of all")
	}
	var zero semaphore.Semaphore
	if zero.TryAcquire(1) || zero.Acquire(bg, 1) != semaphore.ErrTooLarge {
		t.Error("the zero Semaphore has a permit")
	}
}

func TestTooLargeFailsAndKeepsNobodyOut(t *testing.T) {
	sem := semaphore.New(2)
	if err := sem.Acquire(bg, 3); err != semaphore.ErrTooLarge {
		t.Errorf("Acquire = %v", err)
	}
	if _, err := suspend.Do(bg, sem.AcquireOp(3)); err != semaphore.ErrTooLarge {
		t.Errorf("AcquireOp = %v", err)
	}
	if !sem.TryAcquire(2) {
		t.Error("it keeps others out")
	}
}

func TestMisusePanicsAndChangesNothing(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(3)
		_ = sem.Acquire(bg, 2)
		cases := map[string]struct {
			f    func()
			want string
		}{
			"New":         {func() { semaphore.New(-1) }, "semaphore: negative number of permits"},
			"Acquire":     {func() { _ = sem.Acquire(bg, -1) }, "semaphore: negative number of permits"},
			"TryAcquire":  {func() { sem.TryAcquire(-1) }, "semaphore: negative number of permits"},
			"AcquireOp":   {func() { sem.AcquireOp(-1) }, "semaphore: negative number of permits"},
			"Release":     {func() { sem.Release(-1) }, "semaphore: negative number of permits"},
			"over":        {func() { sem.Release(3) }, "semaphore: released more than held"},
			"over by far": {func() { sem.Release(math.MaxInt64) }, "semaphore: released more than held"},
			"Resize":      {func() { sem.Resize(-1) }, "semaphore: negative number of permits"},
		}
		check := func() {
			for name, c := range cases {
				func() {
					defer func() {
						if v := recover(); v != c.want {
							t.Errorf("%s: panic %v", name, v)
						}
					}()
					c.f()
				}()
			}
		}
		check()
		if n := free(sem, 3); n != 1 {
			t.Errorf("%d free, want 1", n)
		}
		got := false
		_ = s.Go(func() { _ = sem.Acquire(bg, 2); got = true; sem.Release(2) })
		suspend.Yield()
		check() // with a waiter in the queue
		suspend.Yield()
		if got {
			t.Error("a failed Release has released")
		}
		sem.Release(2)
		schedtest.Yield(2)
		if n := free(sem, 3); !got || n != 3 {
			t.Errorf("granted: %v, %d free, want 3", got, n)
		}
	})
}

// After a Resize to fewer permits, releases reduce the surplus first. A Resize to more permits grants requests at once. Both keep
// the order.
func TestResize(t *testing.T) {
	for name, sem := range map[string]*semaphore.Semaphore{"made": semaphore.New(2), "zero": new(semaphore.Semaphore), "huge": semaphore.New(math.MaxInt64)} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			var got []string
			ask := func(n int64) {
				_ = s.Go(func() {
					err := sem.Acquire(bg, n)
					got = append(got, fmt.Sprint(n, " ", err))
				})
				schedtest.Yield(2)
			}
			expect := func(want ...string) {
				t.Helper()
				schedtest.Yield(3)
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v, want %v", name, got, want)
				}
				got = nil
			}
			sem.Resize(4)
			require.NoError(t, sem.Acquire(bg, 4))
			sem.Resize(1) // three permits are to be removed
			ask(2)
			expect("2 " + semaphore.ErrTooLarge.Error())
			ask(1)
			sem.Release(3)
			expect()
			require.False(t, sem.TryAcquire(0))
			sem.Resize(2) // one permit more, which the waiter gets
			expect("1 <nil>")
			ask(2)
			ask(0)
			ask(1)
			sem.Resize(1) // one permit is to be removed again
			expect("2 "+semaphore.ErrTooLarge.Error(), "0 <nil>")
			sem.Release(1)
			expect()
			sem.Resize(3)
			expect("1 <nil>")
			if n := free(sem, 9); n != 1 {
				t.Errorf("%s: %d free, want 1", name, n)
			}
			sem.Release(2)
			schedtest.Panics(t, "semaphore: released more than held", func() { sem.Release(1) })
			sem.Resize(math.MaxInt64)
			require.True(t, sem.TryAcquire(math.MaxInt64))
			sem.Resize(0)
			sem.Release(math.MaxInt64)
			require.False(t, sem.TryAcquire(1))
		})
	}
}

// Close ends the waits in order. Permits that a task holds can still be released.
func TestClose(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(2)
		require.NoError(t, sem.Acquire(bg, 1))
		var order []int
		for i, n := range []int64{2, 1, 0} {
			_ = s.Go(func() {
				require.Equal(t, semaphore.ErrClosed, sem.Acquire(bg, n))
				order = append(order, i)
			})
		}
		suspend.Yield()
		require.NoError(t, sem.Close())
		require.Equal(t, semaphore.ErrClosed, sem.Close())
		require.ErrorIs(t, sem.Acquire(bg, 3), suspend.ErrClosed)
		_, err := suspend.Do(bg, sem.AcquireOp(1))
		require.Equal(t, semaphore.ErrClosed, err)
		require.False(t, sem.TryAcquire(1))
		schedtest.Yield(2)
		require.Equal(t, []int{0, 1, 2}, order)
		sem.Release(1)
		schedtest.Panics(t, "semaphore: released more than held", func() { sem.Release(1) })
	})
}

// The zero Semaphore has no permits. A request for zero permits is granted, and may be released.
func TestZero(t *testing.T) {
	for _, sem := range []*semaphore.Semaphore{new(semaphore.Semaphore), semaphore.New(0)} {
		require.NoError(t, sem.Acquire(bg, 0))
		sem.Release(0)
		require.Equal(t, semaphore.ErrTooLarge, sem.Acquire(bg, 1))
		require.False(t, sem.TryAcquire(1))
		schedtest.Panics(t, "semaphore: released more than held", func() { sem.Release(1) })
	}
}

func TestDoneContextFailsThoughFree(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	sem := semaphore.New(1)
	for name, err := range map[string]error{"1": sem.Acquire(ctx, 1), "too large": sem.Acquire(ctx, 2)} {
		if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !sem.TryAcquire(1) {
		t.Error("acquired anyway")
	}
}

// A large request waits, and small ones that would fit wait behind it.
func TestNobodyOvertakes(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(4)
		_ = sem.Acquire(bg, 3)
		var order []int
		for i, n := range []int64{3, 1, 2, 1, 0} {
			_ = s.Go(func() { _ = sem.Acquire(bg, n); order = append(order, i) })
		}
		for _, step := range []struct {
			release int64
			want    []int
		}{
			{0, nil},
			{1, nil},
			{1, []int{0}},
			{1, []int{0, 1}},
			{2, []int{0, 1, 2}},
			{1, []int{0, 1, 2, 3, 4}},
		} {
			sem.Release(step.release)
			schedtest.Yield(3)
			if !slices.Equal(order, step.want) {
				t.Fatalf("granted %v, want %v", order, step.want)
			}
			if len(order) < 5 && (sem.TryAcquire(1) || sem.TryAcquire(0)) {
				t.Fatal("TryAcquire has overtaken")
			}
		}
	})
}

func TestReleaseGrantsAllThatFit(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(6)
		_ = sem.Acquire(bg, 6)
		var order []int
		for i, n := range []int64{1, 2, 3, 1} {
			_ = s.Go(func() { _ = sem.Acquire(bg, n); order = append(order, i) })
		}
		suspend.Yield()
		sem.Release(6)
		suspend.Yield()
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("granted %v", order)
		}
		sem.Release(1)
		suspend.Yield()
		if len(order) != 4 {
			t.Errorf("granted %v", order)
		}
	})
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(sem *semaphore.Semaphore, cancel func())
		want error
	}{
		"while queued":              {func(sem *semaphore.Semaphore, cancel func()) { cancel(); schedtest.Yield(2); sem.Release(2) }, context.Canceled},
		"just before the hand-over": {func(sem *semaphore.Semaphore, cancel func()) { cancel(); sem.Release(2) }, context.Canceled},
		"just after the hand-over":  {func(sem *semaphore.Semaphore, cancel func()) { sem.Release(2); cancel() }, nil},
		"after the return":          {func(sem *semaphore.Semaphore, cancel func()) { sem.Release(2); schedtest.Yield(2); cancel() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, warm := range []bool{false, true} { // whether the task has waited with ctx before
				schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
					sem := semaphore.New(2)
					_ = sem.Acquire(bg, 2)
					ctx, cancel := schedtest.WithCancel()
					got, behind := errors.New("none"), false
					_ = s.Go(func() {
						if warm {
							_, _ = suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
								r.Resume(struct{}{}, nil)
								return struct{}{}, false
							})
						}
						got = sem.Acquire(ctx, 2)
					})
					_ = s.Go(func() { _ = sem.Acquire(bg, 1); behind = true })
					schedtest.Yield(2)
					c.meet(sem, cancel)
					schedtest.Yield(2)
					if !errors.Is(got, c.want) {
						t.Fatalf("Acquire = %v, want %v", got, c.want)
					}
					if behind != (c.want != nil) {
						t.Errorf("granted to the next: %v", behind)
					}
					if got == nil {
						sem.Release(2)
					}
					schedtest.Yield(2)
					if n := free(sem, 2); n != 1 {
						t.Errorf("%d free, want 1", n)
					}
				})
			}
		})
	}
}

// When a large waiter is cancelled, the waiters behind it get the free permits at once, not at the next Release. (Regression test
// of golang.org/issue/37852.)
func TestCancelledHeadLetsOthersPass(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(10)
		_ = sem.Acquire(bg, 7)
		ctx, cancel := context.WithCancel(bg)
		var order []int
		_ = s.Go(func() {
			if sem.Acquire(ctx, 10) == nil {
				t.Error("acquired")
			}
			order = append(order, 0)
		})
		for i, n := range []int64{1, 2, 1} {
			_ = s.Go(func() { _ = sem.Acquire(bg, n); order = append(order, i+1) })
		}
		suspend.Yield()
		cancel()
		for len(order) == 0 {
			suspend.Yield()
		}
		schedtest.Yield(2)
		if !slices.Equal(order, []int{0, 1, 2}) {
			t.Errorf("in order %v, want 0 1 2", order)
		}
		sem.Release(1)
		suspend.Yield()
		if !slices.Equal(order, []int{0, 1, 2, 3}) {
			t.Errorf("in order %v, want 0 1 2 3", order)
		}
	})
}

func TestCancelledInTheMiddleDisturbsNobody(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(3)
		_ = sem.Acquire(bg, 3)
		ctx, cancel := schedtest.WithCancel()
		var order []int
		for i := range 3 {
			_ = s.Go(func() {
				c := bg
				if i == 1 {
					c = ctx
				}
				if err := sem.Acquire(c, 2); err != nil {
					i += 10
				}
				order = append(order, i)
			})
		}
		suspend.Yield()
		sem.Release(1)
		cancel()
		schedtest.Yield(2)
		if !slices.Equal(order, []int{11}) {
			t.Errorf("%v", order)
		}
		sem.Release(1)
		schedtest.Yield(2)
		sem.Release(1)
		schedtest.Yield(2)
		if !slices.Equal(order, []int{11, 0}) {
			t.Errorf("%v", order)
		}
		sem.Release(1)
		schedtest.Yield(2)
		if !slices.Equal(order, []int{11, 0, 2}) {
			t.Errorf("%v", order)
		}
	})
}

// No matter what is cancelled, and when, no more permits are granted than exist, and all are free in the end.
func TestStressWithCancellation(t *testing.T) {
	for i, size := range []int64{1, 7, 7} {
		resized := i == 2
		schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
			const tasks, rounds = 20, 250
			sem, other := semaphore.New(size), semaphore.New(1)
			var inside, granted, cancelled, tried, lost atomic.Int64
			covered := func() bool { return granted.Load() > 0 && cancelled.Load() > 0 && lost.Load() > 0 }
			schedtest.Stress(t, next, tasks, func(_ int, rng *rand.Rand) {
				for k := 0; schedtest.More(k, rounds, covered); k++ {
					n := rng.Int64N(size) + 1
					if rng.IntN(8) == 0 {
						n = size
					}
					if resized && rng.IntN(8) == 0 {
						sem.Resize(rng.Int64N(size + 1))
					}
					ctx, cancel := schedtest.MayCancel(rng)
					var err error
					switch rng.IntN(4) {
					case 0:
						_, err = suspend.Do(ctx, sem.AcquireOp(n))
					case 1:
						mine, lose := suspend.CaseOf(sem.AcquireOp(n)), suspend.CaseOf(other.AcquireOp(1))
						var won suspend.Selectable
						if won, err = suspend.Select(ctx, mine, lose); won == suspend.Selectable(lose) {
							suspend.Yield()
							other.Release(1)
							lost.Add(1)
							cancel()
							continue
						}
						if err == nil {
							_, err = mine.Result() // includes ErrTooLarge
						}
					case 2:
						if sem.TryAcquire(n) {
							tried.Add(1)
							break
						}
						fallthrough
					default:
						err = sem.Acquire(ctx, n)
					}
					if err != nil {
						cancelled.Add(1)
						if !errors.Is(err, context.Canceled) && !(resized && err == semaphore.ErrTooLarge) {
							t.Errorf("Acquire = %v", err)
						}
					} else {
						if now := inside.Add(n); now > size {
							t.Errorf("%d permits of %d are out", now, size)
						}
						if rng.IntN(4) == 0 {
							suspend.Yield()
						}
						granted.Add(1)
						inside.Add(-n)
						for n > 0 { // in portions other than those acquired
							k := rng.Int64N(n) + 1
							sem.Release(k)
							n -= k
						}
					}
					cancel()
				}
			})
			t.Logf("size %d: %d granted, %d of them by trying, %d cancelled, %d lost", size, granted.Load(), tried.Load(), cancelled.Load(), lost.Load())
			if !covered() {
				t.Error("an outcome was not covered")
			}
			sem.Resize(size)
			if n := free(sem, size); n != size || !other.TryAcquire(1) {
				t.Errorf("%d of %d are free in the end", n, size)
			}
		})
	}
}

// A large waiter is cancelled again and again while small ones come and go. Its cancellation must grant the permits to those
// behind it: no permit is released meanwhile, so no Release would do it.
func TestCancelledHeadStress(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const rounds, small = 300, 3
		sem := semaphore.New(small + 1)
		var granted, failed int
		covered := func() bool { return granted > 0 && failed > 0 }
		for i := 0; schedtest.More(i, rounds, covered); i++ {
			_ = sem.Acquire(bg, 1)
			ctx, cancel := context.WithCancel(bg)
			var all sync.WaitGroup
			all.Add(1 + small)
			var large error
			_ = next().Go(func() {
				defer all.Done()
				if large = sem.Acquire(ctx, small+1); large == nil {
					sem.Release(small + 1)
				}
			})
			for range small {
				_ = next().Go(func() {
					defer all.Done()
					_ = sem.Acquire(bg, 1)
					if i%2 == 0 { // otherwise both permits would be out at once
						sem.Release(1)
					}
				})
			}
			switch i % 6 {
			case 0, 3:
				cancel()
				all.Wait() // one permit is held until then
				sem.Release(1)
			case 1, 4, 5:
				go cancel()
				sem.Release(1)
				all.Wait()
			case 2:
				sem.Release(1)
				all.Wait()
			}
			cancel()
			if i%2 != 0 {
				sem.Release(small)
			}
			if large == nil {
				granted++
			} else {
				failed++
			}
			if n := free(sem, small+1); n != small+1 {
				t.Fatalf("round %d: %d free", i, n)
			}
		}
		t.Logf("%d granted, %d cancelled", granted, failed)
		if !covered() {
			t.Error("an outcome was not covered")
		}
	})
}

// A large request is granted although small requests keep the semaphore busy.
func TestLargeIsNotStarved(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		sem := semaphore.New(4)
		var stop atomic.Bool
		fs := []func(){func() {
			for range 50 {
				_ = sem.Acquire(bg, 4)
				sem.Release(4)
				suspend.Yield()
			}
			stop.Store(true)
		}}
		for range 8 {
			fs = append(fs, func() {
				for !stop.Load() {
					_ = sem.Acquire(bg, 1)
					suspend.Yield()
					sem.Release(1)
				}
			})
		}
		schedtest.Run(t, s, fs...)
	})
}

func TestOpInSelect(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		a, b := semaphore.New(2), semaphore.New(1)
		_, _ = a.Acquire(bg, 1), b.Acquire(bg, 1)
		ca, cb := suspend.CaseOf(a.AcquireOp(2)), suspend.CaseOf(b.AcquireOp(1))
		var won suspend.Selectable
		behind := false
		_ = s.Go(func() { won, _ = suspend.Select(bg, ca, cb) })
		_ = s.Go(func() { _ = a.Acquire(bg, 1); behind = true })
		schedtest.Yield(2)
		if won != nil || behind {
			t.Fatal("no waiter could be served")
		}
		b.Release(1)
		schedtest.Yield(3)
		if won != suspend.Selectable(cb) {
			t.Fatalf("won %v", won)
		}
		if !behind {
			t.Error("a case that has lost keeps others out")
		}
		a.Release(2)
		b.Release(1)
		// This subtest leaves the semaphore closed, without waiters.
		_ = a.Acquire(bg, 2)
		if won, err := suspend.TrySelect(bg, ca); won != nil || err != nil {
			t.Errorf("TrySelect = %v, %v", won, err)
		}
		a.Release(2)
		if !a.TryAcquire(2) {
			t.Error("not free after a TrySelect")
		}
		// A Select has the same operation twice.
		one, two := suspend.CaseOf(a.AcquireOp(1)), suspend.CaseOf(a.AcquireOp(2))
		won = nil
		_ = s.Go(func() { won, _ = suspend.Select(bg, two, one) })
		suspend.Yield()
		a.Release(1)
		suspend.Yield()
		a.Release(1)
		schedtest.Yield(2)
		if won == nil || a.TryAcquire(2) {
			t.Error("nothing acquired")
		}
	})
}

func TestOpInThen(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(2)
		_ = sem.Acquire(bg, 2)
		var got []error
		k := func(_ struct{}, err error) { got = append(got, err) }
		ctx, cancel := schedtest.WithCancel()
		suspend.Then(ctx, sem.AcquireOp(2), s, k)
		suspend.Then(bg, sem.AcquireOp(1), s, k)
		sem.Release(1)
		schedtest.Yield(2)
		if len(got) != 0 {
			t.Fatal("overtaken")
		}
		cancel()
		schedtest.Yield(3)
		if len(got) != 2 || !errors.Is(got[0], context.Canceled) || got[1] != nil {
			t.Errorf("got %v", got)
		}
		sem.Release(2)
		if n := free(sem, 2); n != 2 {
			t.Errorf("%d free", n)
		}
	})
}

// A waiting goroutine is durably blocked, so the clock of a bubble advances.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sem := semaphore.New(1)
		_ = sem.Acquire(bg, 1)
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		if err := sem.Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire = %v after an hour", err)
		}
	})
}

// A value that is reachable only from a cancelled waiter is freed.
func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		sem := semaphore.New(1)
		_ = sem.Acquire(bg, 1)
		var kept schedtest.Objects
		ctx, cancel := context.WithCancel(bg)
		failed := false
		func() {
			captured := kept.New()
			_ = s.Go(func() {
				_ = sem.Acquire(ctx, 1)
				runtime.KeepAlive(captured)
				failed = true
			})
		}()
		suspend.Yield()
		cancel()
		for !failed {
			suspend.Yield()
		}
		kept.Collected(t, 0)
		runtime.KeepAlive(sem)
	})
}

func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	sem, resized := semaphore.New(3), semaphore.New(2)
	resized.Resize(3)
	for name, f := range map[string]func(){
		"free":              func() { _ = sem.Acquire(bg, 2); sem.Release(2) },
		"free, cancellable": func() { _ = sem.Acquire(ctx, 2); sem.Release(2) },
		"try":               func() { sem.TryAcquire(2); sem.Release(2) },
		"resized":           func() { _ = resized.Acquire(ctx, 2); resized.Release(2) },
		"Resize":            func() { resized.Resize(4); resized.Resize(3) },
	} {
		if got := testing.AllocsPerRun(100, f); got > 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
	for name, ctx := range map[string]context.Context{"contended": bg, "contended, cancellable": ctx} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			stop, waits := false, 0
			turn := func() {
				_ = sem.Acquire(ctx, 2)
				suspend.Yield()
				if !sem.TryAcquire(1) {
					waits++
				} else {
					sem.Release(1)
				}
				sem.Release(2)
			}
			_ = s.Go(func() {
				for !stop {
					turn()
				}
			})
			if got := testing.AllocsPerRun(100, turn); got > 0 {
				t.Errorf("%s: %v allocations", name, got)
			}
			stop = true
			if waits == 0 {
				t.Error("no waiter: uncovered")
			}
		})
	}
}

// A second Resize adds to the permits that the first one has yet to remove.
func TestResizeTwiceWhileAllPermitsAreHeld(t *testing.T) {
	s := semaphore.New(4)
	require.True(t, s.TryAcquire(4))
	s.Resize(3)
	s.Resize(2)
	s.Release(4)
	require.False(t, s.TryAcquire(3))
	require.True(t, s.TryAcquire(2))
	require.False(t, s.TryAcquire(1))
}

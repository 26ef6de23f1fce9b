package latch_test

import (
	"context"
	"errors"
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
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var bg = context.Background()

func TestWaitForAll(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const n = 50
		l := latch.New(n)
		var counted atomic.Int32
		var fs []func()
		for range n {
			fs = append(fs, func() {
				if err := l.Wait(bg); err != nil || counted.Load() != n || !l.TryWait() {
					t.Errorf("Wait = %v after %d", err, counted.Load())
				}
			}, func() {
				if l.TryWait() {
					t.Error("open too early")
				}
				counted.Add(1)
				l.CountDown()
			})
		}
		schedtest.Run(t, s, fs...)
		if err := l.Wait(bg); err != nil {
			t.Error(err)
		}
	})
}

func TestOpenFromTheBeginning(t *testing.T) {
	var zero latch.Latch
	for _, l := range []*latch.Latch{&zero, latch.New(0)} {
		if err := l.Wait(bg); err != nil || !l.TryWait() {
			t.Errorf("Wait = %v", err)
		}
		<-l.Done()
		schedtest.Panics(t, "latch: CountDown below zero", l.CountDown)
		if !l.TryWait() {
			t.Error("closed by a failed CountDown")
		}
	}
	schedtest.Panics(t, "latch: negative count", func() { latch.New(-1) })
}

func TestDone(t *testing.T) {
	l := latch.New(1)
	done := l.Done()
	select {
	case <-done:
		t.Error("closed while the latch is closed")
	default:
	}
	l.CountDown()
	<-done
	if l.Done() != done {
		t.Error("another channel")
	}
}

func TestDoneContextFailsThoughOpen(t *testing.T) {
	cause := errors.New("cause")
	ctx, cancel := context.WithCancelCause(bg)
	cancel(cause)
	for n := range 2 {
		if err := latch.New(n).Wait(ctx); !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Errorf("%d: Wait = %v", n, err)
		}
	}
}

// On fifo the order of all steps is known, so the test cancels at each point exactly.
func TestCancelAtEachPoint(t *testing.T) {
	for name, c := range map[string]struct {
		meet func(l *latch.Latch, cancel func())
		want error
	}{
		"while waiting":           {func(l *latch.Latch, cancel func()) { cancel(); schedtest.Yield(2); l.CountDown() }, context.Canceled},
		"too late, it has opened": {func(l *latch.Latch, cancel func()) { cancel(); l.CountDown() }, nil},
		"after it was opened":     {func(l *latch.Latch, cancel func()) { l.CountDown(); cancel() }, nil},
		"after the return":        {func(l *latch.Latch, cancel func()) { l.CountDown(); schedtest.Yield(2); cancel() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				l := latch.New(1)
				ctx, cancel := schedtest.WithCancel()
				got, other := errors.New("none"), false
				_ = s.Go(func() { got = l.Wait(ctx) })
				_ = s.Go(func() { _ = l.Wait(bg); other = true })
				suspend.Yield()
				c.meet(l, cancel)
				schedtest.Yield(2)
				if !errors.Is(got, c.want) {
					t.Errorf("Wait = %v, want %v", got, c.want)
				}
				if !other {
					t.Error("the other waiter is left behind")
				}
			})
		})
	}
}

func TestWaitersGoOnInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		l := latch.New(1)
		var order []int
		for i := range 5 {
			_ = s.Go(func() { _ = l.Wait(bg); order = append(order, i) })
		}
		suspend.Yield()
		l.CountDown()
		schedtest.Yield(2)
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
	})
}

// A waiter that returns nil sees everything before the count-downs, any other waiter was cancelled, and no waiter is left behind.
func TestLatchStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		var opened, failed atomic.Int64
		covered := func() bool { return opened.Load() > 0 && failed.Load() > 0 }
		for round := 0; schedtest.More(round, 150, covered); round++ {
			const n = 8
			l := latch.New(n)
			var counted atomic.Int32
			var all sync.WaitGroup
			for i := range n {
				all.Add(2)
				_ = next().Go(func() {
					defer all.Done()
					if (i+round)%3 == 0 {
						suspend.Yield()
					}
					counted.Add(1)
					l.CountDown()
				})
				_ = next().Go(func() {
					defer all.Done()
					rng := rand.New(rand.NewPCG(uint64(i), uint64(round)))
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					switch rng.IntN(3) {
					case 0:
						cancel()
					case 1:
						go cancel()
					}
					wait := l.Wait
					if rng.IntN(3) == 0 {
						wait = func(ctx context.Context) error { _, err := suspend.Do(ctx, l.WaitOp()); return err }
					}
					switch err := wait(ctx); {
					case err == nil:
						opened.Add(1)
						if counted.Load() != n {
							t.Error("open too early")
						}
					case errors.Is(err, context.Canceled):
						failed.Add(1)
					default:
						t.Error(err)
					}
				})
			}
			all.Wait()
			<-l.Done()
		}
		t.Logf("%d saw it open, %d cancelled", opened.Load(), failed.Load())
		if !covered() {
			t.Error("an outcome was not covered")
		}
	})
}

func TestWaitOpInSelectAndThen(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		a, b := latch.New(1), latch.New(2)
		ca, cb := suspend.CaseOf(a.WaitOp()), suspend.CaseOf(b.WaitOp())
		if won, err := suspend.TrySelect(bg, ca, cb); won != nil || err != nil {
			t.Errorf("TrySelect = %v, %v", won, err)
		}
		var won suspend.Selectable
		_ = s.Go(func() { won, _ = suspend.Select(bg, ca, cb) })
		var got []error
		k := func(_ struct{}, err error) { got = append(got, err) }
		ctx, cancel := schedtest.WithCancel()
		suspend.Then(ctx, a.WaitOp(), s, k)
		suspend.Then(bg, b.WaitOp(), s, k)
		suspend.Yield()
		cancel()
		b.CountDown()
		b.CountDown()
		schedtest.Yield(3)
		if won != suspend.Selectable(cb) {
			t.Errorf("won %v", won)
		}
		if len(got) != 2 || !errors.Is(got[0], context.Canceled) || got[1] != nil {
			t.Errorf("got %v", got)
		}
		a.CountDown()
		if won, _ := suspend.Select(bg, ca); won != suspend.Selectable(ca) {
			t.Error("an open latch is not selected")
		}
	})
}

// A waiting goroutine is durably blocked, so the clock of a bubble advances.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		if err := latch.New(1).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v after an hour", err)
		}
		if _, err := latch.NewBarrier(2).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait = %v after an hour", err)
		}
	})
}

// A value that is reachable only from a cancelled waiter is freed, even if the cancellation came too late.
func TestNothingIsRetained(t *testing.T) {
	l, b := latch.New(1), latch.NewBarrier(2)
	for name, c := range map[string]struct {
		wait   func(context.Context)
		cancel func(cancel func())
	}{
		"latch":         {func(ctx context.Context) { _ = l.Wait(ctx) }, func(cancel func()) { cancel() }},
		"barrier":       {func(ctx context.Context) { _, _ = b.Wait(ctx) }, func(cancel func()) { cancel() }},
		"barrier, late": {func(ctx context.Context) { _, _ = b.Wait(ctx) }, func(cancel func()) { cancel(); _, _ = b.Wait(bg) }},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var kept schedtest.Objects
				ctx, cancel := context.WithCancel(bg)
				if name == "barrier, late" {
					ctx = &untold{Context: ctx}
				}
				ended := false
				func() {
					captured := kept.New()
					_ = s.Go(func() {
						c.wait(ctx)
						runtime.KeepAlive(captured)
						ended = true
					})
				}()
				suspend.Yield()
				c.cancel(cancel)
				for !ended {
					suspend.Yield()
				}
				kept.Collected(t, 0)
			})
		})
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(b)
}

func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var open latch.Latch
	many := latch.New(1000)
	alone := latch.NewBarrier(1)
	for name, f := range map[string]func(){
		"Wait, open":    func() { _ = open.Wait(bg); _ = open.Wait(ctx) },
		"CountDown":     many.CountDown,
		"Barrier, of 1": func() { _, _ = alone.Wait(bg) },
	} {
		limit := 0.0
		if name == "Barrier, of 1" {
			limit = 3 // includes the record of a goroutine's wait, which Wait needs before it knows that it need not wait
		}
		if got := testing.AllocsPerRun(100, f); got > limit {
			t.Errorf("%s: %v allocations, limit %v", name, got, limit)
		}
	}
	for name, ctx := range map[string]context.Context{"on fifo": bg, "on fifo, cancellable": ctx} {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			b, stop := latch.NewBarrier(2), false
			_ = s.Go(func() {
				for !stop {
					_, _ = b.Wait(ctx)
				}
			})
			if got := testing.AllocsPerRun(100, func() { _, _ = b.Wait(ctx) }); got > 0 {
				t.Errorf("%s: %v allocations in a round", name, got)
			}
			stop = true
			_, _ = b.Wait(ctx)
		})
	}
}

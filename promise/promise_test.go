package promise_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

func TestAwait(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		p := promise.New[int]()
		var got atomic.Int64
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Add(1)
			_ = s.Go(func() {
				defer waiting.Done()
				v, err := p.Await(bg)
				if err != nil {
					t.Error(err)
				}
				got.Add(int64(v))
			})
		}
		_ = s.Go(func() { _ = p.Fill(7) })
		waiting.Wait()
		if got.Load() != 700 {
			t.Errorf("sum %d, want 700", got.Load())
		}
		if v, err := p.Await(bg); v != 7 || err != nil {
			t.Errorf("Await of a filled promise = %d, %v", v, err)
		}
	})
}

func TestFilledOnce(t *testing.T) {
	oops := errors.New("oops")
	var p promise.Promise[int]
	if _, ok, _ := p.Try(); ok {
		t.Error("an empty promise is filled")
	}
	if !p.Resolve(3, oops) {
		t.Error("not filled")
	}
	for _, again := range []bool{p.Fill(4), p.Fail(errors.New("other")), p.Resolve(5, nil)} {
		if again {
			t.Error("filled again")
		}
	}
	if v, ok, err := p.Try(); v != 3 || err != oops || !ok {
		t.Errorf("Try = %d, %v, %v", v, err, ok)
	}
	if v, err := p.Await(bg); v != 3 || err != oops {
		t.Errorf("Await = %d, %v", v, err)
	}
}

func TestFailWithNilPanics(t *testing.T) {
	var p promise.Promise[int]
	defer func() {
		if v := recover(); v != "promise: Fail with a nil error" {
			t.Errorf("panic %v", v)
		}
		if !p.Fill(1) {
			t.Error("filled by a Fail with a nil error")
		}
	}()
	_ = p.Fail(nil)
}

func TestDoneContextFailsThoughFilled(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	var p promise.Promise[int]
	_ = p.Fill(1)
	if v, err := p.Await(ctx); v != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Await = %d, %v", v, err)
	}
}

func TestCancelAtEachPoint(t *testing.T) {
	for name, cancelFirst := range map[string]bool{"while waiting": true, "after the Fill": false} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var p promise.Promise[int]
				ctx, cancel := context.WithCancelCause(bg)
				cause := errors.New("cause")
				v, err, ended, others := 0, error(nil), false, 0
				_ = s.Go(func() { v, err = p.Await(ctx); ended = true })
				_ = s.Go(func() { _, _ = p.Await(bg); others++ })
				suspend.Yield()
				if cancelFirst {
					cancel(cause)
					for !ended {
						suspend.Yield()
					}
					_ = p.Fill(9)
				} else {
					_ = p.Fill(9)
					cancel(cause)
				}
				for !ended || others < 1 {
					suspend.Yield()
				}
				if cancelFirst && (v != 0 || !errors.Is(err, cause) || !errors.Is(err, context.Canceled)) {
					t.Errorf("Await = %d, %v", v, err)
				}
				if !cancelFirst && (v != 9 || err != nil) {
					t.Errorf("Await = %d, %v, though it was filled first", v, err)
				}
			})
		})
	}
}

func TestDone(t *testing.T) {
	var before, after promise.Promise[int]
	done := before.Done()
	select {
	case <-done:
		t.Error("closed while empty")
	default:
	}
	_ = before.Fill(1)
	<-done
	if before.Done() != done {
		t.Error("another channel")
	}
	_ = after.Fail(errors.New("oops"))
	<-after.Done()
}

func TestFillRace(t *testing.T) {
	for range 200 {
		var p promise.Promise[int]
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if p.Fill(i) {
					won.Add(1)
				}
			})
			all.Go(func() {
				first, _ := p.Await(bg)
				if again, _ := p.Await(bg); again != first {
					t.Errorf("%d, then %d", first, again)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d won", won.Load())
		}
	}
}

// A waiting goroutine is durably blocked, so the clock of a bubble advances.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p promise.Promise[int]
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		got := make(chan int, 1)
		go func() {
			v, _ := p.Await(ctx)
			got <- v
		}()
		synctest.Wait()
		if _, err := new(promise.Promise[int]).Await(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Await = %v after an hour", err)
		}
		<-got // the second wait is cancelled, too
	})
}

func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		p := promise.New[int]()
		collected, failed := make(chan struct{}), false
		ctx, cancel := context.WithCancel(bg)
		func() {
			captured := new([1 << 10]byte)
			runtime.AddCleanup(captured, func(struct{}) { close(collected) }, struct{}{})
			_ = s.Go(func() {
				_, _ = p.Await(ctx)
				runtime.KeepAlive(captured)
				failed = true
			})
		}()
		suspend.Yield()
		cancel()
		for !failed {
			suspend.Yield()
		}
		for i := 0; ; i++ {
			runtime.GC()
			suspend.Yield()
			select {
			case <-collected:
				_ = p.Fill(1)
				return
			case <-time.After(time.Millisecond):
			}
			if i == 100 {
				t.Fatal("what a cancelled waiter held is still alive")
			}
		}
	})
}

func TestAllocs(t *testing.T) {
	var p promise.Promise[int]
	_ = p.Fill(1)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	if got := testing.AllocsPerRun(100, func() { _, _ = p.Await(bg); _, _ = p.Await(ctx) }); got > 0 {
		t.Errorf("%v allocations for a filled promise", got)
	}
}

package mvar_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

func TestPutTake(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var m mvar.MVar[int]
		schedtest.Run(t, s, func() {
			_ = s.Go(func() {
				for i := range 1000 {
					if err := m.Put(bg, i); err != nil {
						t.Error(err)
					}
				}
			})
			for i := range 1000 {
				if v, err := m.Take(bg); v != i || err != nil {
					t.Fatalf("Take = %d, %v, want %d", v, err, i)
				}
			}
		})
	})
}

func TestTry(t *testing.T) {
	m := mvar.NewFull(1)
	if m.TryPut(2) {
		t.Error("TryPut into a full MVar")
	}
	if v, ok := m.TryTake(); v != 1 || !ok {
		t.Errorf("TryTake = %d, %v", v, ok)
	}
	if _, ok := m.TryTake(); ok {
		t.Error("TryTake from an empty MVar")
	}
	if !m.TryPut(3) {
		t.Error("TryPut into an empty MVar")
	}
}

func TestDoneContextFailsThoughPossible(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	m := mvar.New[int]()
	if err := m.Put(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Put = %v", err)
	}
	if _, ok := m.TryTake(); ok {
		t.Error("a Put that failed has put")
	}
	m = mvar.NewFull(2)
	if _, err := m.Take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Take = %v", err)
	}
	if v, ok := m.TryTake(); v != 2 || !ok {
		t.Error("a Take that failed has taken")
	}
}

func TestServedInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		m := mvar.NewFull(-1)
		for i := range 10 {
			_ = s.Go(func() { _ = m.Put(bg, i) })
		}
		suspend.Yield()
		for want := -1; want < 10; want++ {
			if v, _ := m.Take(bg); v != want {
				t.Fatalf("Take = %d, want %d", v, want)
			}
		}
		var got []int
		for i := range 10 {
			_ = s.Go(func() {
				v, _ := m.Take(bg)
				got = append(got, 100*i+v)
			})
		}
		suspend.Yield()
		for i := range 10 {
			_ = m.Put(bg, i)
		}
		for len(got) < 10 {
			suspend.Yield()
		}
		for i, v := range got {
			if v != 101*i {
				t.Fatalf("got %v", got)
			}
		}
	})
}

// Each value that was put and not refused is taken once, under all cancellations.
func TestStressWithCancellation(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		const pairs, rounds = 8, 1500
		var m mvar.MVar[int64]
		var put, took, putSum, tookSum, failed, putting atomic.Int64
		ctx := func(rng *rand.Rand) (context.Context, context.CancelFunc) {
			switch rng.IntN(3) {
			case 0:
				return bg, func() {}
			case 1:
				return context.WithTimeout(bg, time.Duration(rng.IntN(50))*time.Microsecond)
			}
			ctx, cancel := context.WithCancel(bg)
			go cancel()
			return ctx, cancel
		}
		covered := func() bool { return failed.Load() > 0 && put.Load() > 0 }
		stop, stopAll := context.WithCancel(bg)
		putting.Store(pairs)
		schedtest.Stress(t, next, 2*pairs, func(i int, rng *rand.Rand) {
			if i%2 == 0 {
				for k := 0; schedtest.More(k, rounds, covered); k++ {
					ctx, cancel := ctx(rng)
					v := int64(i*rounds + k)
					if m.Put(ctx, v) == nil {
						put.Add(1)
						putSum.Add(v)
					} else {
						failed.Add(1)
					}
					cancel()
				}
				if putting.Add(-1) == 0 {
					stopAll()
				}
				return
			}
			for stop.Err() == nil {
				c, cancel := ctx(rng)
				if c == bg {
					c = stop
				}
				if v, err := m.Take(c); err == nil {
					took.Add(1)
					tookSum.Add(v)
				} else {
					failed.Add(1)
				}
				cancel()
			}
		})
		if v, ok := m.TryTake(); ok {
			took.Add(1)
			tookSum.Add(v)
		}
		t.Logf("%d put, %d failed", put.Load(), failed.Load())
		if put.Load() != took.Load() || putSum.Load() != tookSum.Load() {
			t.Errorf("put %d (sum %d), took %d (sum %d)", put.Load(), putSum.Load(), took.Load(), tookSum.Load())
		}
		if !covered() {
			t.Error("an outcome was not covered")
		}
		if !m.TryPut(1) {
			t.Error("a waiter is left in it")
		}
	})
}

// A value that was taken is freed, and so is a cancelled waiter.
func TestNothingIsRetained(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var values schedtest.Objects
		m := mvar.New[*schedtest.Object]()
		_ = m.Put(bg, values.New())
		_, _ = m.Take(bg)
		_ = m.Put(bg, new(schedtest.Object))
		ctx, cancel := context.WithCancel(bg)
		failed, over := false, false
		defer func() { over = true }()
		_ = s.Go(func() {
			_ = m.Put(ctx, values.New()) // this Put is cancelled
			failed = true
			_, _ = mvar.New[int]().Take(ctx)
			for !over { // keeps the task alive
				suspend.Yield()
			}
		})
		suspend.Yield()
		cancel()
		for !failed {
			suspend.Yield()
		}
		values.Collected(t, 0)
		runtime.KeepAlive(m)
	})
}

func TestAllocs(t *testing.T) {
	m := mvar.New[int]()
	if got := testing.AllocsPerRun(100, func() { _ = m.Put(bg, 1); _, _ = m.Take(bg) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

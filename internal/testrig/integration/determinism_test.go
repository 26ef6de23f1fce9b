package integration_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/lazy"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// Two runs with the same seed have the same steps, whatever the program uses. Otherwise a failing seed could not be repeated.
func TestSeedsRepeatRuns(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() || schedtest.Race {
		seeds = 20
	}
	type scheduler interface {
		suspend.Spawner
		Run(ctx context.Context, main func(ctx context.Context) error) error
	}
	for name, open := range map[string]func(seed uint64) scheduler{
		"fifo":   func(seed uint64) scheduler { return fifo.New(fifo.Options{Seed: seed}) },
		"random": func(seed uint64) scheduler { return random.New(random.Options{Seed: seed}) },
	} {
		for _, procs := range []int{1, 8} {
			t.Run(fmt.Sprintf("%s/GOMAXPROCS %d", name, procs), func(t *testing.T) {
				defer schedtest.Within(t, 10*schedtest.Deadline)()
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				traces := map[string]bool{}
				for seed := uint64(1); seed <= seeds; seed++ {
					var runs [2]string
					for i := range runs {
						synctest.Test(t, func(t *testing.T) { // in a bubble, where a timer fires when all tasks wait
							s := open(seed)
							if err := s.Run(bg, func(ctx context.Context) error {
								runs[i] = everything(ctx, s)
								return nil
							}); err != nil {
								t.Error(err)
							}
						})
					}
					if runs[0] != runs[1] {
						t.Fatalf("seed %d:\n%s\n%s", seed, runs[0], runs[1])
					}
					traces[runs[0]] = true
				}
				if len(traces) < 2 {
					t.Error("all seeds have the same run")
				}
			})
		}
	}
}

// everything runs a program that uses all primitives, and returns its events in order.
func everything(ctx context.Context, on suspend.Spawner) string {
	var trace []string
	log := func(format string, args ...any) { trace = append(trace, fmt.Sprintf(format, args...)) }
	all := latch.New(0)
	var running []func()
	task := func(f func()) { running = append(running, f) }

	// A Select with five ready cases, and a Choose.
	var ready []suspend.Op[int]
	for i := range 5 {
		var p promise.Promise[int]
		_ = p.Fill(i)
		ready = append(ready, p.AwaitOp())
	}
	for i := range 3 {
		task(func() {
			cases := make([]suspend.Selectable, len(ready))
			for i, op := range ready {
				cases[i] = suspend.CaseOf(op)
			}
			won, _ := suspend.Select(ctx, cases...)
			log("select %d %d", i, won.(*suspend.Case[int]).Value())
			v, _ := suspend.Do(ctx, suspend.Choose(ready...))
			log("choose %d %d", i, v)
		})
	}

	// A promise with twelve followers.
	var p promise.Promise[int]
	for i := range 12 {
		task(func() {
			switch i % 3 {
			case 0:
				v, _ := suspend.Do(ctx, promise.Race(&p))
				log("race %d %v", i, v)
			case 1:
				v, _ := suspend.Do(ctx, promise.Any(&p))
				log("any %d %v", i, v)
			default:
				v, _ := suspend.Do(ctx, promise.All(&p, &p))
				log("all %d %v", i, v)
			}
		})
	}
	task(func() { _ = p.Fill(7); log("filled") })

	// Timers of equal and of different times.
	for i := range 4 {
		task(func() {
			_ = suspend.Sleep(ctx, time.Duration(i+1)*time.Millisecond)
			log("slept %d", i)
			_, _ = suspend.Do(ctx, suspend.After(time.Duration(10*i+7)*time.Millisecond))
			log("after %d", i)
		})
	}

	// Three tasks use each primitive.
	var mv mvar.MVar[int]
	var mu mutex.Mutex
	var rw mutex.RWMutex
	sem := semaphore.New(2)
	cd := cond.New(&mu)
	ch := chanx.New[int](1)
	barrier := latch.NewBarrier(3)
	lz := lazy.New(func(context.Context) (int, error) { suspend.Yield(); log("lazy runs"); return 1, nil }, lazy.Restart)
	signalled := false
	for i := range 3 {
		task(func() { _ = mv.Put(ctx, i); v, _ := mv.Take(ctx); log("mvar %d %d", i, v) })
		task(func() {
			_ = mu.LockContext(ctx)
			suspend.Yield()
			log("mutex %d", i)
			mu.Unlock()
		})
		task(func() {
			_ = rw.RLockContext(ctx)
			suspend.Yield()
			rw.RUnlock()
			_ = rw.LockContext(ctx)
			log("rwmutex %d", i)
			rw.Unlock()
		})
		task(func() { _ = sem.Acquire(ctx, 1); suspend.Yield(); log("semaphore %d", i); sem.Release(1) })
		task(func() {
			_ = mu.LockContext(ctx)
			for !signalled {
				_ = cd.Wait(ctx)
			}
			log("cond %d", i)
			mu.Unlock()
		})
		task(func() { _ = ch.Send(ctx, i); v, _ := ch.Recv(ctx); log("chan %d %d", i, v) })
		task(func() { n, _ := barrier.Wait(ctx); log("barrier %d %d", i, n) })
		task(func() { _, _ = lz.Force(ctx); log("lazy %d", i) })
	}
	task(func() {
		_ = mu.LockContext(ctx)
		signalled = true
		cd.Broadcast()
		mu.Unlock()
		log("broadcast")
	})

	all = latch.New(len(running))
	for _, f := range running {
		_ = on.Go(func() { defer all.CountDown(); f() })
	}
	_ = all.Wait(ctx)
	return strings.Join(trace, ", ")
}

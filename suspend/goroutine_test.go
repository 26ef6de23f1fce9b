package suspend_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// Goroutines without a task wait one after another and in parallel. Each Resumer is also called while later goroutines use its
// record.
func TestResumersOfOtherGoroutines(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	const goroutines, rounds = 8, 500
	old := make(chan suspend.Resumer[int], 64)
	stop := make(chan struct{})
	var attack, all sync.WaitGroup
	attack.Go(func() {
		for {
			select {
			case r := <-old:
				if r.Resume(-1, nil) {
					t.Error("the Resumer of an earlier suspension has resumed")
				}
			case <-stop:
				return
			}
		}
	})
	for g := range goroutines {
		all.Go(func() {
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			for i := range rounds {
				want := g*rounds + i
				c, again := bg, suspend.Resumer[int]{}
				if i%2 == 0 {
					c = ctx
				}
				v, err := suspend.Suspend(c, func(r suspend.Resumer[int]) (int, bool) {
					again = r
					switch i % 3 {
					case 0:
						return want, true
					case 1:
						r.Resume(want, nil)
					default:
						go r.Resume(want, nil)
					}
					return 0, false
				})
				if v != want || err != nil {
					t.Errorf("Suspend = %d, %v, want %d", v, err, want)
				}
				select {
				case old <- again:
				default:
				}
			}
		})
	}
	all.Wait()
	close(stop)
	attack.Wait()
}

// A value that block returns wins over a lazy cancellation. The Unpark of the cancellation must not wake another wait.
func TestLazyCancellationInBlockWakesNobodyElse(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for range 100 {
		ctx, cancel := context.WithCancel(bg)
		v, err := suspend.Suspend(lazily.Allow(suspend.Lazily(ctx)), func(r suspend.Resumer[int]) (int, bool) {
			cancel()
			if r.Resume(2, nil) {
				t.Error("resumed with a done context")
			}
			return 1, true
		})
		if v != 1 || err != nil {
			t.Fatalf("Suspend = %d, %v", v, err)
		}
		v, err = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
			time.AfterFunc(10*time.Microsecond, func() { r.Resume(3, nil) })
			return 0, false
		})
		if v != 3 || err != nil {
			t.Fatalf("Suspend = %d, %v, want 3", v, err)
		}
	}
}

// A primitive written with Suspend and a Queue removes its node after an error, whether or not other waiters are queued behind
// it.
func TestRemoveAfterAnErrorOnGoroutines(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var g suspend.Guard
	var q suspend.Queue[int, int]
	failed := errors.New("failed")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 300 {
				var me suspend.Resumer[int]
				v, err := suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
					g.Lock()
					defer g.Unlock()
					q.Push(r, i)
					me = r
					go func() {
						g.Lock()
						defer g.Unlock()
						q.Resume(7, failed)
					}()
					return 0, false
				})
				if v != 7 || err != failed {
					t.Errorf("Suspend = %d, %v", v, err)
				}
				g.Lock()
				if q.Remove(me) {
					t.Error("removed a waiter that was resumed")
				}
				g.Unlock()
			}
		})
	}
	all.Wait()
	if q.Len() != 0 {
		t.Errorf("%d are left", q.Len())
	}
}

// The same holds if some waiters learn inside block that they have failed. Each has a queue of its own.
func TestRemoveAfterAFailureInBlock(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	failed := errors.New("failed")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var g suspend.Guard
			var q suspend.Queue[int, int]
			for i := range 300 {
				var me suspend.Resumer[int]
				_, err := suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
					g.Lock()
					defer g.Unlock()
					if me = r; i%3 != 0 {
						r.Resume(0, failed)
						return 0, false
					}
					q.Push(r, i)
					go func() {
						g.Lock()
						defer g.Unlock()
						q.Resume(1, nil)
					}()
					return 0, false
				})
				if err != nil {
					runtime.Gosched()
					g.Lock()
					if q.Remove(me) {
						t.Error("removed a waiter that never queued")
					}
					g.Unlock()
				}
			}
		})
	}
	all.Wait()
}

// A record is dropped after waits for large values, or for values of many types.
func TestRecordsStaySmall(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	type large [8 << 20]byte
	before := heap()
	for range 10 {
		_, _ = suspend.Suspend(bg, func(r suspend.Resumer[large]) (v large, ok bool) { return v, true })
	}
	if now := heap(); now > before+4<<20 {
		t.Errorf("the heap has grown from %d to %d bytes", before, now)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestNoTaskInTheBlockOfAGoroutine(t *testing.T) {
	_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) {
		if task := suspend.Current(); task != nil {
			t.Errorf("Current = %v", task)
		}
		schedtest.Panics(t, "suspend: Suspend inside block", func() { suspend.Self() })
		return 1, true
	})
}

// A goroutine outside bubbles waits in turn with goroutines of bubbles. They must not share a record with a channel of another
// bubble.
func TestBubblesShareNoChannel(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	wait := func() {
		var m mvar.MVar[int]
		time.AfterFunc(time.Microsecond, func() { _ = m.Put(bg, 1) }) // in a bubble: once the other goroutine is durably blocked
		if v, err := m.Take(bg); v != 1 || err != nil {
			t.Errorf("Take = %d, %v", v, err)
		}
	}
	for range 50 {
		wait()
		synctest.Test(t, func(*testing.T) { wait() })
	}
}

func TestAllocsOfGoroutines(t *testing.T) {
	if schedtest.Race {
		return // under the race detector, a sync.Pool drops items at random
	}
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var ping, pong mvar.MVar[int]
	go func() {
		for {
			v, err := ping.Take(ctx)
			if err != nil {
				return
			}
			_ = pong.Put(ctx, v)
		}
	}()
	if got := testing.AllocsPerRun(1000, func() {
		_ = ping.Put(ctx, 1)
		_, _ = pong.Take(ctx)
	}); got > 1 { // the garbage collector may empty the pool
		t.Errorf("%v allocations", got)
	}
}

package suspend_test

import (
	"runtime"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// After tasks have waited for large values, the kept coroutines hold no memory of that size. Otherwise an event loop could keep
// 140 MB.
func TestLargeSlotsAreNotKept(t *testing.T) {
	const tasks = 200
	type large [64 << 10]byte
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.GC() // empties the pools
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		var begun promise.Promise[struct{}]
		resumers := make(chan suspend.Resumer[large], tasks)
		fs := make([]func(), tasks)
		for i := range fs {
			fs[i] = func() {
				_, _ = begun.Await(bg)
				_, _ = suspend.Suspend(bg, func(r suspend.Resumer[large]) (v large, ok bool) {
					resumers <- r
					return v, false
				})
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = begun.Fill(struct{}{})
			for range tasks {
				r := <-resumers
				r.Resume(large{1}, nil)
			}
		}()
		schedtest.Run(t, s, fs...)
		<-done
		if after := heap(); after > before+4<<20 {
			t.Errorf("%d MB stay", (after-before)>>20)
		}
	})
}

func TestForbidden(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			if suspend.Forbidden() {
				t.Error("in a task")
			}
			suspend.Bind(nil, func() {
				if !suspend.Forbidden() {
					t.Error("allowed under Bind(nil, f)")
				}
			})
			_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) {
				if !suspend.Forbidden() {
					t.Error("allowed in block")
				}
				return 0, true
			})
			if suspend.Forbidden() {
				t.Error("after all that")
			}
		})
	})
	if suspend.Forbidden() {
		t.Error("on a goroutine")
	}
}

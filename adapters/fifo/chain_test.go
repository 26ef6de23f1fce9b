package fifo_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// warm runs tasks of s until the scheduler has often recognised their goroutines as its own.
func warm(s *fifo.Scheduler) {
	for range 64 {
		_ = s.Go(func() {
			for range 16 {
				_ = s.Go(func() {})
			}
		})
	}
	suspend.Yield()
	suspend.Yield()
}

// A scheduler is nested in a task of another one, and runs an endless chain of callbacks. It must not keep the outer scheduler
// from running its tasks.
func TestAChainOfCallbacksHoldsUpNobody(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var stop atomic.Bool
	n := 0
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			for range 50 {
				suspend.Yield()
			}
			stop.Store(true)
		})
		inner := fifo.New(fifo.Options{})
		return inner.Run(ctx, func(context.Context) error {
			warm(inner)
			var k func()
			k = func() {
				if n++; !stop.Load() {
					_ = inner.Execute(k)
				}
			}
			return inner.Execute(k)
		})
	})
	if n < 50 {
		t.Errorf("%d callbacks", n)
	}
}

// Nor is the chain of callbacks reported as a stall.
func TestAChainOfCallbacksIsNoStall(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	const after = 100 * time.Millisecond
	var stalls atomic.Int32
	s := fifo.New(fifo.Options{StallAfter: after, OnStall: func([]byte) { stalls.Add(1) }})
	var longest time.Duration // the longest pause between callbacks, which is long on a loaded machine
	_ = s.Run(context.Background(), func(context.Context) error {
		warm(s)
		start := time.Now()
		last := start
		var k func()
		k = func() {
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
			if now.Sub(start) < 4*after {
				_ = s.Execute(k)
			}
		}
		return s.Execute(k)
	})
	if stalls.Load() > 0 && longest < after*3/4 {
		t.Errorf("a stall is reported, and each callback was followed by the next within %v", longest)
	}
}

// The body of a Pull began in a task, but another goroutine may continue it. Then it does not run on the scheduler.
func TestABodyIsNotTheSchedulers(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var ran atomic.Int64
	s := fifo.New(fifo.Options{})
	submitted := int64(0)
	_ = s.Run(context.Background(), func(context.Context) error {
		next, stop := suspend.Pull(func(yield func(int) bool) {
			for i := 0; ; i++ {
				for range 100 {
					submitted++
					_ = s.Go(func() { ran.Add(1) })
				}
				if !yield(i) {
					return
				}
			}
		})
		for range 10 {
			next()
		}
		var other sync.WaitGroup
		other.Go(func() {
			for range 100 {
				next()
			}
			stop()
		})
		var done atomic.Bool
		go func() { other.Wait(); done.Store(true) }()
		for !done.Load() {
			_ = s.Go(func() {})
			suspend.Yield()
		}
		return nil
	})
	if ran.Load() != submitted {
		t.Errorf("%d of %d tasks", ran.Load(), submitted)
	}
}

// A callback must not suspend, and neither must the hook for its panic. The hook for the panic of a task may suspend.
func TestAHookOfACallback(t *testing.T) {
	var told []bool // whether the hook may suspend
	s := fifo.New(fifo.Options{OnPanic: func(any, []byte) { told = append(told, suspend.Current() != nil) }})
	_ = s.Run(context.Background(), func(context.Context) error {
		_ = s.Execute(func() { panic("callback") })
		return s.Go(func() { panic("task") })
	})
	if len(told) != 2 || told[0] || !told[1] {
		t.Error(told)
	}
}

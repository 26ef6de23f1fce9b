package suspend_test

import (
	"context"
	"iter"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

var bg = context.Background()

// taking is a sequence that suspends.
func taking(m *mvar.MVar[int]) iter.Seq[int] {
	return func(yield func(int) bool) {
		for {
			v, err := m.Take(bg)
			if err != nil || v < 0 || !yield(v) {
				return
			}
		}
	}
}

func TestPullBodySuspendsTheCallerOfNext(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		_ = s.Go(func() { // could not run if the body blocked the scheduler
			for i := range 100 {
				_ = m.Put(bg, i)
			}
			_ = m.Put(bg, -1)
		})
		next, stop := suspend.Pull(taking(&m))
		defer stop()
		for want := range 100 {
			if v, ok := next(); v != want || !ok {
				t.Fatalf("next = %d, %v, want %d", v, ok, want)
			}
		}
		if v, ok := next(); ok {
			t.Errorf("next = %d at the end", v)
		}
	})
}

func TestPullBodyFollowsNextFromTaskToTask(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m, turn mvar.MVar[int]
		next, stop := suspend.Pull(taking(&m))
		defer stop()
		for i := range 4 {
			_ = s.Go(func() {
				_, _ = turn.Take(bg)
				if v, ok := next(); v != i || !ok {
					t.Errorf("task %d: next = %d, %v", i, v, ok)
				}
				_ = turn.Put(bg, 0)
			})
		}
		_ = turn.Put(bg, 0)
		for i := range 4 {
			_ = m.Put(bg, i)
		}
		_, _ = turn.Take(bg)
	})
}

func TestPullInPull(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		_ = s.Go(func() {
			for i := range 10 {
				_ = m.Put(bg, i)
			}
			_ = m.Put(bg, -1)
		})
		doubled := func(yield func(int) bool) {
			next, stop := suspend.Pull(taking(&m))
			defer stop()
			for v, ok := next(); ok; v, ok = next() {
				if !yield(2 * v) {
					return
				}
			}
		}
		next, stop := suspend.Pull(doubled)
		defer stop()
		for want := range 10 {
			if v, ok := next(); v != 2*want || !ok {
				t.Fatalf("next = %d, %v, want %d", v, ok, 2*want)
			}
		}
	})
}

func TestPullStopRunsTheBodysDefersUnderTheCaller(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		var m mvar.MVar[int]
		deferred := false
		next, stop := suspend.Pull(func(yield func(int) bool) {
			defer func() {
				_, _ = m.Take(bg) // suspends inside stop
				deferred = true
			}()
			yield(1)
		})
		next()
		_ = s.Go(func() { _ = m.Put(bg, 1) })
		stop()
		if !deferred {
			t.Error("the deferred Take has not returned")
		}
	})
}

func TestPullOffEveryTask(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var m mvar.MVar[int]
	go func() { _ = m.Put(bg, 7) }()
	next, stop := suspend.Pull(taking(&m))
	defer stop()
	if v, ok := next(); v != 7 || !ok {
		t.Errorf("next = %d, %v", v, ok)
	}
}

// While a next is suspended, a next or stop of another task panics and changes nothing: the first task continues, and so does its
// scheduler. Otherwise the first task would lose its binding and block its scheduler, or a stop would end the process.
func TestPullIsUsedByOneAtATime(t *testing.T) {
	const busy = "suspend: next or stop of Pull called while another call has not returned"
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var waits, goOn promise.Promise[struct{}]
		next, stop := suspend.Pull(func(yield func(int) bool) {
			for i := range 3 {
				if i == 1 {
					_ = waits.Fill(struct{}{})
					_, _ = goOn.Await(bg)
				}
				if !yield(i) {
					return
				}
			}
		})
		schedtest.Run(t, s, func() {
			for want := range 2 {
				if v, ok := next(); !ok || v != want {
					t.Errorf("next returns %v, %v", v, ok)
				}
			}
			stop()
			if _, ok := next(); ok {
				t.Error("next after stop")
			}
		}, func() {
			_, _ = waits.Await(bg)
			schedtest.Panics(t, busy, stop)
			schedtest.Panics(t, busy, func() { next() })
			_ = goOn.Fill(struct{}{})
		})
	})
}

// The body must not call next or stop either.
func TestPullFromItsBody(t *testing.T) {
	var stop func()
	panicked := false
	next, stop := suspend.Pull(func(yield func(int) bool) {
		func() {
			defer func() { panicked = recover() != nil }()
			stop()
		}()
		yield(1)
	})
	if v, ok := next(); !ok || v != 1 || !panicked {
		t.Errorf("next returns %v, %v; stop panicked: %v", v, ok, panicked)
	}
	stop()
}

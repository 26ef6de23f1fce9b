package suspend_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Any one call of a context's method may panic, in a wait that is then resumed or cancelled. No waiter may stay queued, no guard
// may stay locked, the continuation must run, and the job must be awaited. Otherwise a Select could leave its cases in their
// queues, or a semaphore could stop granting permits.
func TestAContextThatPanics(t *testing.T) {
	ops := map[string]func(ctx context.Context, l *line){
		"Wait": func(ctx context.Context, l *line) {
			_, _ = suspend.Wait[int](ctx, l)
		},
		"Wait, lazily": func(ctx context.Context, l *line) {
			_, _ = suspend.WaitLazily[int](suspend.Lazily(ctx), l)
		},
		"Suspend": func(ctx context.Context, l *line) {
			var mine suspend.Resumer[int]
			defer func() {
				l.guard.Lock()
				l.Remove(mine)
				l.guard.Unlock()
			}()
			_, _ = suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
				l.guard.Lock()
				defer l.guard.Unlock()
				mine = r
				l.Enqueue(r)
				return 0, false
			})
		},
		"Select": func(ctx context.Context, l *line) {
			_, _ = suspend.Select(ctx, suspend.CaseOf(suspend.OpOf[int](l)), suspend.CaseOf(suspend.OpOf[int](l)), suspend.CaseOf(suspend.After(time.Hour)))
		},
		"Select, Done": func(ctx context.Context, l *line) {
			_, _ = suspend.Select(bg, suspend.CaseOf(suspend.Done(ctx)), suspend.CaseOf(suspend.OpOf[int](l)), suspend.CaseOf(suspend.Done(ctx)))
		},
		"Sleep": func(ctx context.Context, _ *line) {
			_ = suspend.Sleep(ctx, time.Hour)
		},
	}
	perform := func(op func(ctx context.Context, l *line), c *rudeContext, l *line) {
		defer func() {
			if v := recover(); v != nil && v != errRude {
				panic(v)
			}
		}()
		op(c, l)
	}
	for name, op := range ops {
		for _, end := range []string{"resumed", "cancelled"} {
			t.Run(name+"/"+end, func(t *testing.T) {
				for k := 1; ; k++ {
					if k == 100 {
						t.Fatal("calls without end")
					}
					c := newRude(k)
					if end == "resumed" && name == "Sleep" {
						return
					}
					onStanding(t, func(s *fifo.Scheduler) {
						var l line
						ended := false
						_ = s.Go(func() {
							perform(op, c, &l)
							ended = true
						})
						schedtest.Settle()
						if end == "cancelled" {
							c.Cancel()
						}
						if end == "resumed" || name == "Wait, lazily" {
							l.guard.Lock()
							l.waiters.Resume(1, nil)
							l.guard.Unlock()
						}
						schedtest.Eventually(t, fmt.Sprintf("it ends, call %d panicking", k), func() bool { return ended })
						if n := l.len(); n != 0 {
							t.Errorf("call %d: %d waiters stay queued", k, n)
						}
						// The task continues, and the object of the failed wait serves other tasks.
						_ = s.Go(func() { _, _ = suspend.Wait[int](bg, &l) })
						schedtest.Settle()
						if n := l.len(); n != 1 {
							t.Errorf("call %d: %d wait", k, n)
						}
						l.guard.Lock()
						l.waiters.Resume(1, nil)
						l.guard.Unlock()
					})
					if !c.Panicked() {
						return
					}
				}
			})
		}
	}
}

// Blocking waits for its function even if the context panics meanwhile, because the function may use variables of the caller.
func TestBlockingWaitsThoughItsContextPanics(t *testing.T) {
	for k := 1; ; k++ {
		c := newRude(k)
		started := make(chan struct{})
		c.first = func(call int) {
			if call > 1 { // the first call of Err comes before the function is submitted
				<-started
			}
		}
		var ended atomic.Bool
		onStanding(t, func(*fifo.Scheduler) {
			defer func() {
				if v := recover(); v != nil && v != errRude {
					panic(v)
				}
				if c.Panicked() && k > 1 && !ended.Load() {
					t.Errorf("call %d: unwound while its function runs", k)
				}
			}()
			_ = suspend.Blocking(c, func() {
				close(started)
				<-time.After(5 * time.Millisecond) // Blocking must not return before this
				ended.Store(true)
			})
		})
		if !c.Panicked() {
			return
		}
	}
}

// Once a Then has begun, its continuation is called, even if a method of its context panics.
func TestThenIsCalledThoughItsContextPanics(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for _, level := range []bool{false, true} {
		for _, end := range []string{"resumed", "cancelled"} {
			for k := 1; ; k++ {
				c := newRude(k)
				var l line
				var p promise.Promise[error]
				begun := func() (ok bool) {
					defer func() { ok = recover() == nil }()
					op := suspend.OpOf[int](&l)
					if level {
						op = suspend.Choose(op, suspend.Map(suspend.Done(c), func(struct{}, error) (int, error) { return 2, nil }))
					}
					suspend.Then(c, op, survivor{}, func(_ int, err error) { _ = p.Fill(err) })
					return
				}()
				if begun {
					if end == "resumed" {
						l.guard.Lock()
						l.waiters.Resume(1, nil)
						l.guard.Unlock()
					} else {
						c.Cancel()
					}
					if _, err := p.Await(bg); err != nil {
						t.Error(err)
					}
				}
				if n := l.len(); n != 0 {
					t.Errorf("%s, call %d: %d waiters stay queued", end, k, n)
				}
				if !c.Panicked() {
					break
				}
			}
		}
	}
}

// A survivor is an executor that survives panics.
type survivor struct{}

func (survivor) Execute(f func()) error {
	go func() {
		defer func() {
			if v := recover(); v != nil && v != errRude {
				panic(v)
			}
		}()
		f()
	}()
	return nil
}

// onStanding is schedtest.OnFIFO on a scheduler that survives the panics of contexts, because a task also calls its context when
// it ends.
func onStanding(t *testing.T, f func(s *fifo.Scheduler)) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s := fifo.New(fifo.Options{OnPanic: func(v any, stack []byte) {
		if v != errRude {
			t.Errorf("panic %v\n%s", v, stack)
		}
	}})
	if err := s.Run(bg, func(context.Context) error { f(s); return nil }); err != nil {
		t.Error(err)
	}
}

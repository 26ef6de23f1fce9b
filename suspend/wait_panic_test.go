package suspend_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A moody context panics in the first call of its AfterFunc.
type moody struct {
	context.Context
	asked *int
	fire  *func()
}

func (c moody) AfterFunc(f func()) func() bool {
	if *c.asked++; *c.asked == 1 {
		panic("moody")
	}
	*c.fire = f
	return func() bool { return true }
}

// A registration that panicked does not count: the next wait with the same context registers again, and can be cancelled.
func TestContextThatPanicsOnceStillCancels(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		inner, cancel := context.WithCancel(bg)
		var fire func()
		ctx := moody{inner, new(int), &fire}
		wait := func() error {
			_, err := suspend.Suspend(ctx, func(suspend.Resumer[int]) (int, bool) { return 0, false })
			return err
		}
		schedtest.Panics(t, "moody", func() { _ = wait() })
		_ = s.Go(func() {
			cancel()
			if fire == nil {
				t.Error("no registration: the wait would not end")
				panic("it hangs")
			}
			fire()
		})
		if err := wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Suspend = %v", err)
		}
	})
}

// Err must not suspend. If it suspends in the call after the word was opened, the wait that called Err starts again.
func TestErrThatWaits(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for at := 1; at <= 6; at++ {
		schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
			c, end := cancel.New(bg)
			defer end(nil)
			var m, other mvar.MVar[int]
			ctx := &slow{Context: c, at: at, f: func() {
				_ = s.Go(func() { other.TryPut(1) })
				_, _ = other.Take(bg)
			}}
			_ = s.Go(func() {
				suspend.Yield()
				suspend.Yield()
				m.TryPut(7)
			})
			if v, err := m.Take(ctx); v != 7 || err != nil {
				t.Errorf("call %d: Take = %d, %v", at, v, err)
			}
		})
	}
}

// A slow context calls a function of the test in the at'th call of its Err.
type slow struct {
	context.Context
	calls, at int
	f         func()
}

func (c *slow) Err() error {
	if c.calls++; c.calls == c.at {
		c.f()
	}
	return c.Context.Err()
}

// A Then whose level panics when the Then begins leaves no waiter behind, and loses no value.
func TestThenWhoseLevelPanics(t *testing.T) {
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		inner, cancel := context.WithCancel(bg)
		defer cancel()
		var m mailbox
		none := suspend.Map(suspend.Done(rude{inner}), func(struct{}, error) (int, error) { return 0, nil })
		schedtest.Panics(t, "rude", func() {
			suspend.Then(bg, suspend.Choose(m.recv(any1), none), s, func(int, error) { t.Error("called") })
		})
		if m.readers.Len() != 0 {
			t.Error("it is left in the queue")
		}
		m.send(1)
		if len(m.letters) != 1 {
			t.Error("the letter is lost")
		}
		suspend.Yield()
	})
}

// A broken task calls a function of the test before it parks.
type broken struct {
	suspend.Task
	before func()
}

func (b *broken) Park() { b.before(); b.Task.Park() }

// A waitingRoom is a place where a task waits for a value. give delivers a value to a waiter, if there is one.
type waitingRoom struct {
	wait func(ctx context.Context) (int, error)
	give func(v int) bool
}

// The Park of a wait panics. No Resume then ends that wait, its value does not appear in the next wait, and the next wait can be
// cancelled.
func TestAParkThatDoesNotReturn(t *testing.T) {
	inMVar := func(wait func(m *mvar.MVar[int], ctx context.Context) (int, error)) func() waitingRoom {
		return func() waitingRoom {
			m := new(mvar.MVar[int])
			return waitingRoom{
				func(ctx context.Context) (int, error) { return wait(m, ctx) },
				func(v int) bool {
					put := m.TryPut(v)
					_, stayed := m.TryTake()
					return put && !stayed
				},
			}
		}
	}
	rooms := map[string]func() waitingRoom{
		"Wait": inMVar((*mvar.MVar[int]).Take),
		"Select": inMVar(func(m *mvar.MVar[int], ctx context.Context) (int, error) {
			c := suspend.CaseOf(m.TakeOp())
			if _, err := suspend.Select(ctx, c); err != nil {
				return 0, err
			}
			return c.Value(), nil
		}),
		"Suspend": func() waitingRoom {
			var waiting suspend.Resumer[int]
			return waitingRoom{
				func(ctx context.Context) (int, error) {
					return suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) { waiting = r; return 0, false })
				},
				func(v int) bool { return waiting.Resume(v, nil) },
			}
		},
	}
	for name, room := range rooms {
		for _, resumed := range []bool{false, true} {
			for _, exit := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, resumed %v, exit %v", name, resumed, exit), func(t *testing.T) {
					defer schedtest.Within(t, schedtest.Deadline)()
					r, task := room(), &broken{Task: sched.NewThread()}
					ctx, cancel := context.WithCancel(bg)
					again := func() {
						if v := recover(); (v == "broken") == exit {
							t.Errorf("panic %v", v)
						}
						if r.give(2) {
							t.Error("Resume returned true, but no task waits")
						}
						task.before = func() {
							if !r.give(3) {
								t.Error("not resumed")
							}
						}
						if v, err := r.wait(ctx); v != 3 || err != nil {
							t.Errorf("the next wait = %d, %v", v, err)
						}
						task.before = cancel
						if _, err := r.wait(ctx); !errors.Is(err, context.Canceled) {
							t.Errorf("the one after it = %v", err)
						}
					}
					var ended sync.WaitGroup
					ended.Go(func() {
						suspend.Bind(task, func() {
							defer again()
							task.before = func() {
								if resumed && !r.give(1) {
									t.Error("not resumed")
								}
								if exit {
									runtime.Goexit()
								}
								panic("broken")
							}
							_, _ = r.wait(ctx)
							t.Error("it has returned")
						})
					})
					ended.Wait()
				})
			}
		}
	}
}

// brokenTask runs f in a task. f can set a function that Park calls first, and that panics.
func brokenTask(f func(task *broken)) {
	task := &broken{Task: sched.NewThread(), before: func() {}}
	suspend.Bind(task, func() { f(task) })
}

// If a Select did not return, its case can be used again: the old value must not win the next Select.
func TestACaseWhoseParkDoesNotReturn(t *testing.T) {
	for name, op := range map[string]func(m *mvar.MVar[int]) suspend.Op[int]{
		"direct": func(m *mvar.MVar[int]) suspend.Op[int] { return m.TakeOp() },
		"levels": func(m *mvar.MVar[int]) suspend.Op[int] {
			return suspend.Choose(m.TakeOp(), suspend.Map(suspend.After(time.Hour), func(time.Time, error) (int, error) { return 0, nil }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			ctx, cancel := context.WithCancel(bg)
			brokenTask(func(task *broken) {
				var m1, m2 mvar.MVar[int]
				c1, c2 := suspend.CaseOf(op(&m1)), suspend.CaseOf(op(&m2))
				for i := range 3 { // the first wait with ctx takes a different path from the others
					task.before = func() { _ = m1.TryPut(1); panic("broken") }
					schedtest.Panics(t, "broken", func() { _, _ = suspend.Select(ctx, c1, c2) })
					if _, ok := m1.TryTake(); ok {
						t.Error("the value with which the Select was resumed is there")
					}
					task.before = func() { _ = m2.TryPut(2) }
					if won, err := suspend.Select(ctx, c1, c2); won != c2 || err != nil || c2.Value() != 2 {
						t.Errorf("%d: won %v, %v", i, won, err)
					}
				}
				task.before = func() { _ = m1.TryPut(1); panic("broken") }
				schedtest.Panics(t, "broken", func() { _, _ = suspend.Select(ctx, c1, c2) })
				task.before = cancel
				if won, err := suspend.Select(ctx, c1, c2); won != nil || !errors.Is(err, context.Canceled) {
					t.Errorf("won %v, %v", won, err)
				}
			})
		})
	}
}

// A wait whose Park panics was resumed with an error. The next wait must not return that error, even if its Resume writes no
// value.
func TestAnErrorOfAParkThatDoesNotReturn(t *testing.T) {
	brokenTask(func(task *broken) {
		var waiting suspend.Resumer[struct{}]
		wait := func() error {
			_, err := suspend.Suspend(bg, func(r suspend.Resumer[struct{}]) (struct{}, bool) { waiting = r; return struct{}{}, false })
			return err
		}
		task.before = func() { waiting.Resume(struct{}{}, errors.New("oops")); panic("broken") }
		schedtest.Panics(t, "broken", func() { _ = wait() })
		task.before = func() { waiting.Resume(struct{}{}, nil) }
		if err := wait(); err != nil {
			t.Errorf("the next wait = %v", err)
		}
	})
}

// A waiter is queued behind one whose Park panics. It is served as if the first waiter had been cancelled.
func TestWhoWaitsBehindAParkThatDoesNotReturn(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	sem := semaphore.New(2)
	_ = sem.Acquire(bg, 1)
	var behind sync.WaitGroup
	brokenTask(func(task *broken) {
		task.before = func() {
			parked := make(chan struct{})
			behind.Go(func() {
				brokenTask(func(other *broken) {
					other.before = sync.OnceFunc(func() { close(parked) })
					_ = sem.Acquire(bg, 1)
				})
			})
			<-parked
			panic("broken")
		}
		schedtest.Panics(t, "broken", func() { _ = sem.Acquire(bg, 2) })
	})
	behind.Wait()
}

// A nosy context calls a function of the test in the first call of its Done, which package suspend compares with the Done of its
// parent's list.
type nosy struct {
	context.Context
	asked int
	first func()
}

func (c *nosy) Done() <-chan struct{} {
	if c.asked++; c.asked == 1 {
		c.first()
	}
	return c.Context.Done()
}

// Done must not suspend. If it does, its registration must not replace that of the wait around it. This would break the list of a
// context with which other tasks wait.
func TestDoneThatWaits(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	brokenTask(func(task *broken) {
		first, endFirst := cancel.New(bg)
		second, endSecond := cancel.New(bg)
		last, endLast := cancel.New(bg)
		var m, never mvar.MVar[int]
		task.before = func() { endFirst(nil) }
		if _, err := never.Take(first); !errors.Is(err, context.Canceled) {
			t.Errorf("Take = %v", err)
		}
		ctx := &nosy{Context: last, first: func() {
			task.before = func() { _ = m.TryPut(1) }
			if _, err := m.Take(second); err != nil {
				t.Errorf("Take within Done = %v", err)
			}
			task.before = func() { endLast(nil) }
		}}
		if _, err := never.Take(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Take = %v", err)
		}
		endSecond(nil)
		task.before = func() { _ = m.TryPut(2) }
		if v, err := m.Take(bg); v != 2 || err != nil {
			t.Errorf("Take = %d, %v", v, err)
		}
	})
}

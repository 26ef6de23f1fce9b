package suspend_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// moody is a context that panics when it is first asked to call back.
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

// A registration that has failed is not taken for one: the next wait with the same context registers again, and is
// cancelled.
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
				t.Error("nobody is registered: the wait would not end")
				panic("it hangs")
			}
			fire()
		})
		if err := wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("Suspend = %v", err)
		}
	})
}

// A Then whose level panics as it is begun leaves nothing waiting, and loses nothing.
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

// A broken task does something before it parks.
type broken struct {
	suspend.Task
	before func()
}

func (b *broken) Park() { b.before(); b.Task.Park() }

// A waitingRoom is a place to wait in for a value: give gives it to who waits, if anybody does.
type waitingRoom struct {
	wait func(ctx context.Context) (int, error)
	give func(v int) bool
}

// Nobody resumes a wait whose Park has not returned, nothing of it is in the next one, and that is cancelled.
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
			c := suspend.On(m.TakeOp())
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
					r, task := room(), &broken{Task: suspend.Thread()}
					ctx, cancel := context.WithCancel(bg)
					again := func() {
						if v := recover(); (v == "broken") == exit {
							t.Errorf("panic %v", v)
						}
						if r.give(2) {
							t.Error("resumed, and nobody waits")
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

package suspend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/suspend"
)

// A desk is a Source whose single waiter is in a Queue, or in a field of its own.
type desk struct {
	guard   suspend.Guard
	ready   bool
	queue   suspend.Queue[int, struct{}]
	seated  suspend.Resumer[int]
	chair   bool
	removed int
}

func (d *desk) Guard() *suspend.Guard          { return &d.guard }
func (d *desk) Try() (v int, ok bool, _ error) { return 1, d.ready, nil }
func (d *desk) Remove(r suspend.Resumer[int])  { d.removed++; d.queue.Remove(r) }
func (d *desk) resume(v int) (ok bool)         { _, ok = d.queue.Resume(v, nil); return ok }
func (d *desk) locked(f func(*desk) bool) (ok bool) {
	d.guard.Lock()
	defer d.guard.Unlock()
	return f(d)
}

func (d *desk) Enqueue(r suspend.Resumer[int]) {
	if d.seated = r; !d.chair {
		d.queue.Push(r, struct{}{})
	}
}

// everywhere runs f on a task, and on a goroutine without a task.
func everywhere(t *testing.T, f func(t *testing.T, spawn func(func()))) {
	t.Run("task", func(t *testing.T) {
		err := fifo.Run(bg, func(context.Context) error {
			f(t, func(g func()) { _ = suspend.Here().Go(g) })
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("goroutine", func(t *testing.T) { f(t, func(g func()) { go g() }) })
}

func (d *desk) untilQueued() {
	for !d.locked(func(d *desk) bool { return d.seated != (suspend.Resumer[int]{}) }) {
		suspend.Yield()
	}
}

// A Source need not use a Queue. The Resumer then resumes the waiter.
func TestWaitWithoutAQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		for range 3 {
			d := desk{chair: true}
			spawn(func() {
				d.untilQueued()
				if !d.locked(func(d *desk) bool { return d.seated.Resume(7, nil) }) {
					t.Error("refused")
				}
			})
			if v, err := suspend.Wait[int](bg, &d); v != 7 || err != nil {
				t.Error(v, err)
			}
		}
		d := desk{chair: true}
		ctx, stop := cancel.New(bg)
		spawn(func() { d.untilQueued(); stop(nil) })
		if _, err := suspend.Wait[int](ctx, &d); !errors.Is(err, context.Canceled) || d.removed != 1 {
			t.Error(err, d.removed)
		}
	})
}

// A waiter in a Queue is resumed by the Queue, by its Resumer, which leaves the node behind, or by ResumeHead, in turn.
func TestWaitIsResumedInAnyWay(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		var d desk
		for i := range 9 {
			d.locked(func(d *desk) bool { d.seated = suspend.Resumer[int]{}; return true })
			spawn(func() {
				d.untilQueued()
				if !d.locked(func(d *desk) (ok bool) {
					switch i % 3 {
					case 0:
						ok = d.resume(i)
					case 1:
						ok = d.seated.Resume(i, nil)
					default: // the node is behind that of the last wait
						for !ok {
							_, ok = d.queue.ResumeHead(i, nil)
						}
					}
					return ok
				}) {
					t.Error("refused")
				}
			})
			if v, err := suspend.Wait[int](bg, &d); v != i || err != nil {
				t.Error(i, v, err)
			}
		}
		if d.queue.Len() != 0 {
			t.Error(d.queue.Len())
		}
	})
}

// A waiter that its Resumer resumes with an error can remove its node, like a cancelled one.
func TestRemoveAfterAnErrorOfTheResumer(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		var d desk
		var me suspend.Resumer[int]
		_, err := suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
			d.locked(func(d *desk) bool { d.queue.Push(r, struct{}{}); return true })
			me = r
			spawn(func() { r.Resume(0, context.DeadlineExceeded) })
			return 0, false
		})
		if err != context.DeadlineExceeded || !d.locked(func(d *desk) bool { return d.queue.Remove(me) }) || d.queue.Len() != 0 {
			t.Error(err, d.queue.Len())
		}
	})
}

// A node that was left behind has an old generation: whatever happens to it, the task's next wait does not see it.
func TestNodeLeftBehind(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		var old, d desk
		ctx, stop := cancel.New(bg)
		spawn(func() {
			old.untilQueued()
			stop(nil)
		})
		if _, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
			old.locked(func(d *desk) bool { d.queue.Push(r, struct{}{}); d.seated = r; return true })
			return 0, false
		}); err == nil {
			t.Error("not cancelled")
		} // without a Remove
		spawn(func() {
			d.untilQueued()
			if old.locked(func(d *desk) bool { return d.resume(1) }) {
				t.Error("a node that was left behind was resumed")
			}
			d.locked(func(d *desk) bool { return d.resume(2) })
		})
		if v, err := suspend.Wait[int](bg, &d); v != 2 || err != nil {
			t.Error(v, err)
		}
	})
}

// If a Resumer was called before the context ended, its value arrives, even if the task runs only afterwards.
func TestResumedAndThenCancelled(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		for range 3 {
			var d desk
			ctx, stop := cancel.New(bg)
			spawn(func() {
				d.untilQueued()
				if !d.locked(func(d *desk) bool { return d.resume(7) }) {
					t.Error("refused")
				}
				stop(nil)
			})
			if v, err := suspend.Wait[int](ctx, &d); v != 7 || err != nil {
				t.Error(v, err)
			}
			if _, err := suspend.Wait[int](ctx, &d); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// A lazy wait for a level, and a lazy Select, are cancelled like any other wait.
func TestLazilyWhereItIsNotAllowed(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		for _, wait := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := suspend.WaitLazily[int](ctx, soon{}); return err },
			func(ctx context.Context) error {
				_, err := suspend.Do(lazily.Allow(ctx), suspend.After(time.Hour))
				return err
			},
			func(ctx context.Context) error {
				_, err := suspend.Do(lazily.Allow(ctx), suspend.OpOf[int](&desk{}))
				return err
			},
		} {
			ctx, stop := cancel.New(bg)
			spawn(func() { suspend.Yield(); stop(nil) })
			if err := wait(suspend.Lazily(ctx)); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// Ops can be compared, whatever their Sources are.
func TestOpsCanBeCompared(t *testing.T) {
	c := chanx.New[[]int](0)
	if c.SendOp(nil) == c.SendOp(nil) {
		t.Error("two operations are one")
	}
}

// A Queue detects that a lazy wait in it was cancelled.
func TestWaitLazily(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		var d desk
		ctx, stop := cancel.New(bg)
		spawn(func() {
			d.untilQueued()
			stop(nil)
			if d.locked(func(d *desk) bool { return d.resume(7) }) {
				t.Error("resumed")
			}
		})
		if _, err := suspend.WaitLazily[int](suspend.Lazily(ctx), &d); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		var e desk
		ctx, stop = cancel.New(bg)
		defer stop(nil)
		spawn(func() {
			e.untilQueued()
			if !e.locked(func(d *desk) bool { return d.resume(8) }) {
				t.Error("refused")
			}
		})
		if v, err := suspend.WaitLazily[int](suspend.Lazily(ctx), &e); v != 8 || err != nil {
			t.Error(v, err)
		}
	})
}

type soon struct{ after <-chan struct{} }

func (s soon) Guard() *suspend.Guard       { return nil }
func (s soon) Remove(suspend.Resumer[int]) {}

func (s soon) Try() (v int, ok bool, _ error) {
	select {
	case <-s.after:
		return 5, true, nil
	default:
		return 0, false, nil
	}
}

func (s soon) Enqueue(r suspend.Resumer[int]) { go func() { <-s.after; r.Resume(5, nil) }() }

// A level has no guard.
func TestWaitForALevel(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		after := make(chan struct{})
		spawn(func() { close(after) })
		for range 2 {
			if v, err := suspend.Wait[int](bg, soon{after}); v != 5 || err != nil {
				t.Error(v, err)
			}
		}
	})
}

package suspend_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// A desk is a Source whose one waiter sits in a Queue, or on a chair of its own.
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

// everywhere runs f on a task, and on a goroutine without one.
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
		time.Sleep(time.Microsecond)
	}
}

// A Source need not use a Queue: then it is the Resumer that resumes.
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
			if v, err := suspend.Wait[int](bg, &d, false); v != 7 || err != nil {
				t.Error(v, err)
			}
		}
		d := desk{chair: true}
		ctx, stop := cancel.New(bg)
		spawn(func() { d.untilQueued(); stop(nil) })
		if _, err := suspend.Wait[int](ctx, &d, false); !errors.Is(err, context.Canceled) || d.removed != 1 {
			t.Error(err, d.removed)
		}
	})
}

// Who waits in a Queue by Wait is resumed by the Queue, and the misuse of its Resumer takes nothing from it; one that was
// taken off by Pop is resumed as ever.
func TestWaitIsResumedByItsQueue(t *testing.T) {
	everywhere(t, func(t *testing.T, spawn func(func())) {
		var d desk
		spawn(func() {
			d.untilQueued()
			d.locked(func(d *desk) bool {
				defer func() {
					if recover() != "suspend: Resume of a Resumer that waits in a Queue" {
						t.Error("no panic")
					}
				}()
				return d.seated.Resume(6, nil)
			})
			if !d.locked(func(d *desk) bool { return d.resume(7) }) {
				t.Error("refused")
			}
		})
		if v, err := suspend.Wait[int](bg, &d, false); v != 7 || err != nil {
			t.Error(v, err)
		}
		var e desk
		spawn(func() {
			e.untilQueued()
			if !e.locked(func(d *desk) bool { r, _ := d.queue.Pop(); return r.Resume(8, nil) }) {
				t.Error("refused")
			}
		})
		if v, err := suspend.Wait[int](bg, &e, false); v != 8 || err != nil {
			t.Error(v, err)
		}
		// The same task, and the same slot, by Suspend: the Resumer is its owner's again.
		if v, err := suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
			e.locked(func(d *desk) bool { d.queue.Push(r, struct{}{}); return true })
			spawn(func() {
				if !e.locked(func(*desk) bool { return r.Resume(9, nil) }) {
					t.Error("refused")
				}
			})
			return 0, false
		}); v != 9 || err != nil {
			t.Error(v, err)
		}
	})
}

// A lazy wait in a Queue is found cancelled by the Queue.
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
		if _, err := suspend.Wait[int](suspend.Lazily(ctx), &d, true); !errors.Is(err, context.Canceled) {
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
		if v, err := suspend.Wait[int](suspend.Lazily(ctx), &e, true); v != 8 || err != nil {
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
			if v, err := suspend.Wait[int](bg, soon{after}, false); v != 5 || err != nil {
				t.Error(v, err)
			}
		}
	})
}

package simulation

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/simulation/internal/saturate"
	"github.com/braidgo/braid/suspend"
)

// This file is what a World and a Node offer as schedulers, see package sched: tasks, callbacks, timers, holds.

// at returns the place of h, or nil for the nil host.
func (h *host) at() *place {
	if h == nil {
		return nil
	}
	return &h.place
}

// Go runs f as a task, some steps later. It returns an error that wraps suspend.ErrClosed if the run is over or the node has crashed. A
// node that crashes drops a function that has not begun.
func (h *host) Go(f func()) error { return h.submit(ready{host: h, f: labels.Inherit(f)}) }

// GoUntil implements sched.Withdrawer. It is like Go, but if the node crashes before f begins, withdrawn runs as a callback of the World.
// The end of ctx changes nothing.
func (h *host) GoUntil(_ context.Context, f, withdrawn func()) error {
	w := h.world
	return h.submit(ready{host: h, f: labels.Inherit(f), as: &way{gone: func() {
		if !w.over {
			w.ready = append(w.ready, ready{host: &w.host, f: withdrawn, as: callback})
		}
	}}})
}

// Execute runs f as a callback, some steps later. f must not suspend. Like Go, Execute fails if the run is over or the node has crashed.
func (h *host) Execute(f func()) error { return h.submit(ready{host: h, f: f, as: callback}) }

func (h *host) submit(r ready) error {
	if r.f == nil {
		panic("suspend: nil function")
	}
	w := h.world
	if !w.on() {
		return w.fromOutside(r)
	}
	if err := h.refusal(); err != nil {
		return err
	}
	h.used = true
	kind := starts
	if r.as == callback {
		kind = asks
	}
	by, id := w.caller()
	w.note(event{kind: kind, quiet: r.as != nil && r.as.by != nil, host: by, task: id, of: &h.place})
	w.ready = append(w.ready, r)
	return nil
}

// Now returns the current time of the host's clock.
func (h *host) Now() time.Time {
	if h.world.guests != nil && !h.world.on() {
		return time.Now()
	}
	if h.world.own() {
		h.world.clock.pass()
	}
	return h.world.clock.start.Add(h.elapsed())
}

func (h *host) elapsed() time.Duration {
	now := h.world.clock.now
	if h.rate != normal {
		now = saturate.Plus(h.since, saturate.Ratio(now-h.since, h.rate, 0, normal))
	}
	return saturate.Plus(h.offset, now)
}

// AfterFunc calls f as a callback after the duration d. f must not suspend. The function stop cancels the timer, and reports whether it has
// prevented the call.
func (h *host) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if f == nil {
		panic("suspend: nil function")
	}
	w := h.world
	if !w.on() {
		return h.timerFromOutside(d, f)
	}
	by, id := w.caller()
	w.note(event{kind: sets, host: by, task: id, of: &h.place, data: uint64(d)})
	t := w.clock.after(h.scaled(d), h, f)
	return func() bool { return h.stop(t) }
}

// timerFromOutside implements AfterFunc for a goroutine outside the World.
func (h *host) timerFromOutside(d time.Duration, f func()) (stop func() bool) {
	w := h.world
	set := make(chan *timer, 1)
	if w.fromOutside(ready{host: h, as: callback, f: func() { set <- w.clock.after(h.scaled(d), h, f) }}) != nil {
		return func() bool { return false }
	}
	var once sync.Once
	return func() (stopped bool) {
		once.Do(func() {
			select {
			case t := <-set:
				stopped = h.stop(t)
			default:
			}
		})
		return stopped
	}
}

// stop cancels t, and reports whether it has prevented the call of t.f.
func (h *host) stop(t *timer) bool {
	w := h.world
	if !w.on() { // the caller is a goroutine of package context, in a bubble
		_ = w.fromOutside(ready{host: &w.host, as: callback, f: func() { h.stop(t) }})
		return false
	}
	switch {
	case w.over:
		return false
	case t.pos >= 0:
		w.clock.timers.remove(t.pos)
		return true
	}
	return t.clearLate()
}

// gone implements owner.
func (h *host) gone() bool { return h.dead }

// AfterDone implements sched.Watcher. A context of package context would call f on a goroutine outside the World, concurrently with the
// task that cancels the context. Instead the World checks the Done channel after each step, so that a seed repeats.
func (h *host) AfterDone(ctx context.Context, f func()) (stop func() bool) {
	w := h.world
	if w.o.open || !w.on() {
		return context.AfterFunc(ctx, func() { suspend.Bind(nil, f) })
	}
	if at, ok := ctx.Deadline(); ok && !w.clock.stock && at != at.Round(0) && !w.over {
		w.fail(fmt.Errorf("simulation: seed %d, step %d, %v: %w", w.o.Seed, w.steps, w.clock.now, errStockTimeout))
	}
	hook := w.checkContexts
	if !w.clock.stock {
		hook = nil
	}
	return w.watches.add(ctx, h, f, hook).stop
}

// scaled converts the duration d of the host's clock into a duration of the World's clock. It rounds up, so that no timer fires too early.
func (h *host) scaled(d time.Duration) time.Duration {
	if h.rate == normal || d <= 0 {
		return d
	}
	return saturate.Ratio(d, normal, h.rate-1, h.rate) // adding h.rate-1 rounds up
}

// Uint64 implements sched.Rand for the tasks of h.
func (h *host) Uint64() uint64 {
	h.world.own()
	return h.world.dice.random.Uint64()
}

// Block implements sched.Blocker. It calls f at once, while no other task runs and no time passes, so that suspend.Blocking is
// deterministic.
func (h *host) Block(f func()) error {
	if h.world.o.open {
		go f()
		return nil
	}
	f()
	return nil
}

// Here returns the World of the calling task, or nil if the caller is not a task of a World.
func Here() *World {
	if h, ok := suspend.As[interface{ owner() *World }](suspend.Here()); ok {
		return h.owner()
	}
	return nil
}

func (h *host) owner() *World { return h.world }

// Hold implements sched.Holder. Hold counts a wait without a task as a suspended task. Examples are the wait of a Then, and the wait of
// an actor without a message. When main returns, the run ends despite the hold. If the run fails with ErrDeadlock, the text of the error
// says where the hold began. A crash releases the holds of its node. Like Go, Hold fails once the run is over or the
// node has crashed.
func (h *host) Hold() (release func(), err error) {
	n := new(dlist.Node[heldWait])
	runtime.Callers(2, n.Value.by[:])
	err = h.ownOrOutside(func() {
		if !n.Value.over.Load() && !h.dead {
			h.holds.Push(n)
		}
	})
	if err != nil {
		return nil, err
	}
	return func() {
		if n.Value.over.Load() {
			return // a crash has already released the hold
		}
		_ = h.ownOrOutside(func() {
			n.Value.over.Store(true) // a queued call of Hold from outside the World must not list a hold that was released
			h.holds.Remove(n)
		})
	}, nil
}

// OnCrash makes h a crasher of package suspend. A call from outside the World is a callback of the World itself, because a crash drops those of h.
func (h *host) OnCrash(f func() (leave func())) (stop func()) {
	n, root := &dlist.Node[func() func()]{Value: f}, &h.world.host
	var stopped atomicx.Bool
	_ = root.ownOrOutside(func() {
		switch {
		case stopped.Load():
		case h.dead:
			f()()
		default:
			h.crashes.Push(n)
		}
	})
	return func() {
		stopped.Store(true) // before the callback of a call from outside
		_ = root.ownOrOutside(func() { h.crashes.Remove(n) })
	}
}

// ownOrOutside calls f at once if the caller is on the World, and otherwise submits f as a callback.
func (h *host) ownOrOutside(f func()) error {
	if w := h.world; !w.on() {
		return w.fromOutside(ready{host: h, f: f, as: callback})
	}
	err := h.refusal()
	if err == nil {
		f()
	}
	return err
}

// refusal returns the error with which h refuses work, or nil if h accepts work. The caller is on the World.
func (h *host) refusal() error {
	switch {
	case h.world.over:
		return errOver
	case h.dead:
		return errCrashed
	}
	return nil
}

// busy reports whether a task or a hold is left.
func (h *host) busy() bool { return h.tasks.First() != nil || h.holds.First() != nil }

// letGo releases all holds of h.
func (h *host) letGo() {
	for n := h.holds.Pop(); n != nil; n = h.holds.Pop() {
		n.Value.over.Store(true)
	}
}

package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A contextWatch waits for the end of a context that cannot call back into the World, such as a context of package context.
type contextWatch struct {
	done   <-chan struct{}
	host   *host
	f      atomicx.Pointer[func()] // the function to call; nil after the call, or after the watch was stopped
	unhook func() bool             // cancels the call that ends the World's sleep; nil outside a bubble
}

// AfterDone implements sched.Watcher. A context of package context would call f on a goroutine outside the World, concurrently with the
// task that cancels the context. Instead the World checks the Done channel after each step, so that a seed repeats.
func (h *host) AfterDone(ctx context.Context, f func()) (stop func() bool) {
	w := h.world
	if w.o.open || !w.on() {
		return context.AfterFunc(ctx, func() { suspend.Bind(nil, f) })
	}
	if at, ok := ctx.Deadline(); ok && !w.stock && at != at.Round(0) && !w.over {
		w.fail(fmt.Errorf("simulation: seed %d, step %d, %v: %w", w.o.Seed, w.steps, w.now, errStockTimeout))
	}
	t := &contextWatch{done: ctx.Done(), host: h}
	if !h.dead {
		t.f.Store(&f)
		w.watches = append(w.watches, t)
		if w.stock {
			t.unhook = context.AfterFunc(ctx, w.checkContexts)
		}
	}
	return t.stop
}

// unwatch stops the watches of a host that has crashed.
func (w *World) unwatch(h *host) {
	for _, t := range w.watches {
		if t.host == h {
			t.stop()
		}
	}
}

func (t *contextWatch) stop() bool {
	waits := t.f.Swap(nil) != nil
	if t.unhook != nil {
		t.unhook()
	}
	return waits
}

func (t *contextWatch) fire() {
	if f := t.f.Swap(nil); f != nil {
		(*f)()
	}
}

// errStockTimeout is the error of a run that would otherwise wait forever for a timeout. AfterDone recognises a deadline of package context
// by its monotonic reading; a deadline by the World's clock has none.
var errStockTimeout = errors.New("a task waits with a timeout of package context, which counts real time and never comes in a World. " +
	"Use cancel.WithTimeout, or a synctest bubble with Options.Bubble")

// notice makes the callbacks of ended contexts ready, in the order of the AfterDone calls.
func (w *World) notice() {
	left := w.watches[:0]
	for _, t := range w.watches {
		if t.f.Load() == nil {
			continue
		}
		select {
		case <-t.done:
			w.ready = append(w.ready, ready{host: t.host, f: t.fire, as: callback})
		default:
			left = append(left, t)
		}
	}
	clear(w.watches[len(left):])
	w.watches = left
}

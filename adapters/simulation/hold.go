package simulation

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A hold is a wait without a task. Its host lists the hold until the hold is released or the host crashes.
type hold struct {
	over atomicx.Bool // the hold was released; atomic because goroutines outside the World may read the field
	by   [16]uintptr  // the stack of the call of Hold
}

// Hold implements sched.Holder. Hold counts a wait without a task as a suspended task. Examples are the wait of a Then, and the wait of
// an actor without a message. When main returns, the run ends despite the hold. If the run fails with ErrDeadlock, the text of the error
// says where the hold began. A crash releases the holds of its node. Like Go, Hold fails with suspend.ErrClosed once the run is over or the
// node has crashed.
func (h *host) Hold() (release func(), err error) {
	n := new(dlist.Node[hold])
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

// ownOrOutside calls f at once if the caller is on the World, and otherwise submits f as a callback.
func (h *host) ownOrOutside(f func()) error {
	w := h.world
	switch {
	case !w.on():
		return w.fromOutside(ready{host: h, f: f, as: callback})
	case w.over || h.dead:
		return suspend.ErrClosed
	}
	f()
	return nil
}

// letGo releases all holds of h.
func (h *host) letGo() {
	for n := h.holds.Pop(); n != nil; n = h.holds.Pop() {
		n.Value.over.Store(true)
	}
}

// stack returns the stack of the call of Hold, in the format that frame() reads.
func (x *hold) stack() string {
	var b strings.Builder
	for frames, more := runtime.CallersFrames(x.by[:]), true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.PC != 0 {
			fmt.Fprintf(&b, "%s(...)\n\t%s:%d\n", f.Function, f.File, f.Line)
		}
	}
	return b.String()
}

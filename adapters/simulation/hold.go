package simulation

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A hold is a wait without a task. Its host lists it until it is released, or the host crashes.
type hold struct {
	over atomicx.Bool // read by a release on a goroutine, after the crash of the host
	by   [16]uintptr  // the stack of its Hold
}

// Hold counts a wait without a task as a suspended task, see suspend.Holder: the wait of a Then, or of an actor without a message. The run
// does not wait for it when main returns. If nothing can happen any more, the run fails with ErrDeadlock, whose text says where the hold
// began. A crash releases the holds of its node. Hold refuses as Go does.
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
			return // a crash has released it: the node may have refused the caller, which is a goroutine then
		}
		_ = h.ownOrOutside(func() {
			n.Value.over.Store(true) // it may come before a Hold that is on its way from outside
			h.holds.Remove(n)
		})
	}, nil
}

// ownOrOutside calls f, at once where the caller is on the World.
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

// letGo releases all holds.
func (h *host) letGo() {
	for n := h.holds.Pop(); n != nil; n = h.holds.Pop() {
		n.Value.over.Store(true)
	}
}

// stack returns the stack of the Hold, as frame wants it.
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

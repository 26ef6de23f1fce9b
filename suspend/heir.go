package suspend

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
)

// An Inheritor is an object whose waiters may wait for the waiter ahead of them, such as a semaphore, which grants its permits in
// order. If the context of a waiter ends, those behind it must not wait until the scheduler of the cancelled task runs that task, because
// it may be busy for a long time, or may have stopped. So the goroutine that ends the context calls Inherit.
//
// Inherit locks the guard of the object, and does what a cancelled waiter that leaves the queue has to do. For example, it calls
// Queue.DropEnded, and then serves the waiters. Inherit must not suspend, panic or call foreign code. The goroutine may hold any lock of
// the program, but no Guard. Inherit may be called although no waiter has been cancelled, and must then change nothing.
type Inheritor interface{ Inherit() }

// An Heir is a field of an Inheritor, which the Guard of the object protects. The zero Heir is ready to use.
type Heir struct{ of Inheritor }

// LeaveTo names o as the heir of the wait of r. If the context of the wait ends before the task runs again, the goroutine that ends the
// context calls o.Inherit. LeaveTo is called where r is queued, under the guard of o, of which h is a field. It does nothing if no
// context can end the wait, and for a goroutine without a task, which leaves the queue itself at once.
func (r Resumer[T]) LeaveTo(h *Heir, o Inheritor) {
	if reg := r.slot.b.watched.Load(); reg != nil && r.wait.status() == openToContext {
		if h.of == nil {
			h.of = o
		}
		reg.leaveTo(h, r.wait)
		r.slot.owes = true
	}
}

// ended reports whether the wait of r has ended: it was resumed or cancelled, or its context has ended.
func (r Resumer[T]) ended() bool {
	return r.slot == nil || r.done != nil && r.contextEnded() || !r.slot.b.word.pending(r.wait)
}

// heirs is a list of the heirs of a wait. A Select may have several.
type heirs struct {
	heir atomicx.Pointer[Heir]
	next atomicx.Pointer[heirs]
}

// leaveTo adds h to the heirs of the wait that began with this state. The waiter calls it before the wait is queued, and checks the word
// before it parks. So if a context cancels the word too early to find h, the waiter does not park, and removes its nodes at once.
func (r *registration) leaveTo(h *Heir, wait state) {
	at := &r.heirs
	if r.last != nil && r.wait == wait {
		if at = r.last.next.Load(); at == nil {
			at = new(heirs)
			r.last.next.Store(at)
		}
	}
	r.wait, r.last = wait, at
	at.heir.Store(h)
}

// settle empties the list when the waiter runs again, because the list would retain the heirs.
func (b *waiter) settle() {
	if r := b.watched.Load(); r != nil {
		r.settle()
	}
}

func (r *registration) settle() {
	if r.last == nil {
		return
	}
	for at := &r.heirs; at != nil; at = at.next.Load() {
		at.heir.Store(nil)
	}
	r.last = nil
}

// appendHeirs appends the heirs to last, except an heir that is the last element already, since all waiters of a semaphore have the
// same heir.
func (r *registration) appendHeirs(last []cancelctx.Inheritor) []cancelctx.Inheritor {
	for at := &r.heirs; at != nil; at = at.next.Load() {
		h := (*called)(at.heir.Load())
		if h != nil && (len(last) == 0 || last[len(last)-1] != cancelctx.Inheritor(h)) {
			last = append(last, h)
		}
	}
	return last
}

// A called is an Heir that a context calls when it ends.
type called Heir

// Inherit implements cancelctx.Inheritor.
func (h *called) Inherit() { h.of.Inherit() }

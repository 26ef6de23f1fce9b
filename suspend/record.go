package suspend

import (
	"reflect"
	"weak"

	"github.com/braidgo/braid/internal/ledger"
)

// Waits are recorded while package census is on: when they have queued, and not again when they are over, since a look at the ledger after a
// switch would cost each wait 2 %. The word shows whether a recorded wait lasts. No function here is called while the ledger is off, and none
// is inlined: the frames of waits have no room for them.

// waitOf describes the wait of w that began with s.
func waitOf(w *waiter, began state, mayEnd bool) ledger.Wait {
	ref := weak.Make(w)
	r := ledger.Wait{MayEnd: mayEnd, Waiter: ref, Began: uint64(began), Lasts: func() bool {
		w := ref.Value()
		return w != nil && w.word.pending(began)
	}}
	if on := spawnerOf(w.task); on != nil {
		r.On = on
	}
	return r
}

// recordWait records a Wait of the task of b.
//
//go:noinline
func recordWait[T any, S Source[T]](b *binding, s S, r Resumer[T]) {
	w := waitOf(&b.waiter, r.wait, r.done != nil || b.last.status != open)
	w.For = []ledger.Object{objectOf(s, s.Guard())}
	ledger.Waits(w)
}

// recordSuspend records a Suspend: of a Select, which is recorded already; of a task that block put into a Queue; or of another, which
// waits for something unknown.
//
//go:noinline
func recordSuspend[T any](b *binding, r Resumer[T]) {
	w, s := waitOf(&b.waiter, r.wait, r.done != nil || b.last.status != open), r.slot
	if s.queued {
		w.For = []ledger.Object{{Addr: ledger.Addr(s.node.queue()), Wants: 1}}
	}
	ledger.Waits(w)
}

// recordSelect records a wait for legs, in the block of a Suspend. b is bound to the goroutine, and w is the waiter: they are different where
// no task is.
//
//go:noinline
func recordSelect(b *binding, legs []leg, w *waiter, began state, mayEnd bool) {
	r := waitOf(w, began, mayEnd || b.last.status != open)
	r.For = objectsOf(legs)
	ledger.Waits(r)
}

func objectsOf(legs []leg) (objects []ledger.Object) {
	for _, l := range legs {
		objects = append(objects, objectOf(l.about(), l.guard))
	}
	return objects
}

// objectOf describes what a Source waits for, or another that has no guard.
func objectOf(source any, g *Guard) ledger.Object {
	o := ledger.Object{Kind: reflect.TypeOf(source), Wants: 1}
	if g != nil {
		o.Addr = ledger.Addr(g)
	}
	if s, ok := source.(ledger.Wanter); ok {
		o.Wants = uint64(s.Wants())
	}
	return o
}

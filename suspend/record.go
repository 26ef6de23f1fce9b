package suspend

import (
	"reflect"
	"weak"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
)

// While the census (package census) is on, each wait is recorded after its waiter has queued. The end of a wait is not recorded,
// because checking the ledger after a switch would slow each wait by 2 %. Instead, the word shows whether a recorded wait still
// lasts. The functions below are called only while the ledger is on, or a scheduler for tests wants to switch tasks in every
// operation. They are not inlined, because they would enlarge the frames of waits.

// waitOf describes the wait of w that began with this state. If mayEnd is true, a context may end the wait.
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

// recordWait records a Wait by the task of b for the source, whose guard is g.
//
//go:noinline
func recordWait(b *binding, source any, g *Guard, began state, mayEnd bool) {
	w := waitOf(&b.waiter, began, mayEnd || b.last.status != open)
	w.For = []ledger.Object{objectOf(source, g)}
	ledger.Waits(w)
}

// recordSuspend records a Suspend. The record names the Queue into which block has pushed the Resumer, if any. The record of a
// Select already exists and does not change.
//
//go:noinline
func recordSuspend[T any](b *binding, r Resumer[T]) {
	w, s := waitOf(&b.waiter, r.wait, r.done != nil || b.last.status != open), r.slot
	if s.queued {
		w.For = []ledger.Object{{Addr: ledger.Addr(s.node.queue()), Wants: 1}}
	}
	ledger.Waits(w)
}

// recordSelect records a wait for legs, in the block of a Suspend. b is the goroutine's binding. The waiter w is a part of b only
// if a task is bound.
//
//go:noinline
func recordSelect(b *binding, legs []leg, w *waiter, began state, mayEnd bool) {
	r := waitOf(w, began, mayEnd || b.last.status != open)
	r.For = objectsOf(legs)
	ledger.Waits(r)
}

// reportLook reports to a test scheduler that the legs of a Select are about to be tried.
//
//go:noinline
func reportLook(legs []leg) {
	for _, l := range legs {
		if s, ok := l.about().(preempt.Looker); ok {
			preempt.Looks(s.LooksAt())
		}
	}
}

func objectsOf(legs []leg) (objects []ledger.Object) {
	for _, l := range legs {
		objects = append(objects, objectOf(l.about(), l.guard))
	}
	return objects
}

// objectOf describes the object that a leg waits for. g is nil for a level.
func objectOf(source any, g *Guard) ledger.Object {
	o := ledger.Object{Kind: reflect.TypeOf(source), Wants: 1}
	if g != nil {
		o.Addr = ledger.Addr(g)
	}
	if s, ok := source.(ledger.Wanter); ok {
		o.Wants = uint64(s.Wants())
	}
	if s, ok := source.(ledger.Owned); ok {
		o.Owner = s.OwnedBy()
	}
	return o
}

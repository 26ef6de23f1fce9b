package ledger

import (
	"reflect"
	"slices"
	"time"
	"weak"
)

// A Hold is a lock, or a number of permits, that a task holds.
type Hold struct {
	Who
	Seq   uint64 // a unique number
	Since time.Time
	Stack []uintptr // the stack of the call that took the lock
	N     uint64    // the number of permits; 1 for a lock
	Name  string    // the name of the task, if it is an Owner with a name
}

// A Held is an object that has holders.
type Held struct {
	Kind        reflect.Type
	Addr, Bytes uintptr // the address and the size of the object
	Size        uint64  // the total number of permits
	By          []Hold
	Owed        bool // the object is what the Owner of a wait has to produce
}

// held maps addresses to held objects. An object that was garbage-collected while it was held is removed by the next
// sweep. The weak pointer in a holding distinguishes such an object from a later object at the same address.
type held struct {
	by    map[uintptr]*holding
	swept int // the number of objects after the last sweep
}

type holding struct {
	Held
	object interface{ alive() bool }
}

type pointer[T any] struct{ weak.Pointer[T] }

func (p pointer[T]) alive() bool { return p.Value() != nil }

// A Holder is a Source whose operation makes its caller the holder of an object. If the ledger is kept, or a scheduler for tests
// wants to switch tasks in every operation, package suspend calls Took after the operation: in the task with the argument 0, or
// for a continuation with the address of its function.
type Holder interface{ Took(then Then) }

// A Then is the address of a continuation's function, or 0 for a task.
type Then uintptr

// A Wanter is a Source that wants several permits.
type Wanter interface{ Wants() Permits }

// Permits is the type of a number of permits. Permits and Then are distinct types, so that a user's Source cannot
// implement Wanter or Holder by accident.
type Permits uint64

// Took records that the calling task holds object, which at most one task holds. Took must be called after its operation, and Gave
// before its operation. So the ledger may miss a hold for a moment, but never contains a hold that does not exist.
func Took[T any](object *T) {
	if On() {
		took(object, 1, 1, 0)
	}
}

// TookN is like Took, but the calling task holds n permits of object, which has size permits in all. If then is not 0, the
// continuation with this function holds them instead.
func TookN[T any](object *T, n, size uint64, then Then) {
	if On() {
		took(object, n, size, then)
	}
}

func took[T any](object *T, n, size uint64, then Then) {
	if n == 0 {
		return
	}
	h := Hold{Stack: []uintptr{uintptr(then) + 1}, N: n}
	if then == 0 {
		h.Who, h.Stack = caller(), callers(1)
	}
	record(h, object, reflect.TypeFor[T](), size)
}

// Owes records that a task that waits for object waits for what the calling task has to produce, until the calling task calls Gave.
// The object is a part of a K, which the record names. The record has no stack.
func Owes[K, T any](object *T) {
	if On() {
		record(Hold{Who: caller(), N: 1}, object, reflect.TypeFor[K](), 1)
	}
}

func record[T any](h Hold, object *T, kind reflect.Type, size uint64) {
	at := Addr(object)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	if !On() {
		return
	}
	h.Since, h.Seq = time.Now(), seq.Add(1)
	o := p.held.by[at]
	if o == nil || !o.object.alive() {
		if len(p.held.by) > 2*p.held.swept+16 {
			p.held.sweep()
		}
		o = &holding{Held: Held{Kind: kind, Addr: at, Bytes: reflect.TypeFor[T]().Size()}, object: pointer[T]{weak.Make(object)}}
		put(&p.held.by, at, o)
	}
	o.Size = size
	o.By = append(o.By, h)
}

// Resized records that the total number of permits of object is now size.
func Resized[T any](object *T, size uint64) {
	if !On() {
		return
	}
	at := Addr(object)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.held.by[at]; o != nil {
		o.Size = size
	}
}

// Gave records that object is about to be released.
func Gave[T any](object *T) { GaveN(object, 1) }

// GaveN records that n permits of object are about to be released. If the calling task holds none, GaveN takes them from the
// task that has held permits of object the longest.
func GaveN[T any](object *T, n uint64) {
	if On() {
		gave(object, n)
	}
}

func gave[T any](object *T, n uint64) {
	me, at := caller(), Addr(object)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.held.by[at]
	if o == nil {
		return
	}
	seq.Add(1)
	for n > 0 && len(o.By) > 0 {
		i := max(0, slices.IndexFunc(o.By, func(h Hold) bool { return h.Who == me }))
		back := min(n, o.By[i].N)
		n -= back
		if o.By[i].N -= back; o.By[i].N == 0 {
			o.By = slices.Delete(o.By, i, i+1)
		}
	}
	if len(o.By) == 0 {
		delete(p.held.by, at)
	}
}

func (h *held) sweep() {
	for at, o := range h.by {
		if !o.object.alive() {
			delete(h.by, at)
		}
	}
	h.swept = len(h.by)
}

// Owed returns the objects that the Owners of waits have to produce. Each is held by the task of its Owner since the wait began, without
// a stack. This Hold has the Seq of the wait.
func Owed(tasks []Task, waits []Wait) (all []Held) {
	who := map[int64]Who{}
	for _, t := range tasks {
		who[t.Goroutine] = t.Who
	}
	for _, w := range waits {
		who[w.Goroutine] = w.Who
	}
	for _, w := range waits {
		for _, o := range w.For {
			if o.Owner.Task == nil {
				continue
			}
			if id, name := o.Owner.Task(); id != 0 {
				by := Hold{Who: who[id], Seq: w.Seq, Since: w.Since, N: 1, Name: name}
				by.Goroutine = id
				all = append(all, Held{Kind: o.Owner.Kind, Addr: o.Addr, Bytes: 1, Size: 1, By: []Hold{by}, Owed: true})
			}
		}
	}
	return all
}

// Holds returns all objects that the ledger records as held.
func Holds() (all []Held) {
	for i := range parts {
		p := &parts[i]
		p.mu.Lock()
		p.held.sweep()
		for _, o := range p.held.by {
			h := o.Held
			h.By = slices.Clone(h.By)
			all = append(all, h)
		}
		p.mu.Unlock()
	}
	return all
}

package ledger

import (
	"reflect"
	"slices"
	"time"
	"weak"
)

// A Hold is a lock or permits, of an object that tasks hold.
type Hold struct {
	Who
	Seq   uint64 // no other hold has it
	Since time.Time
	Stack []uintptr // the call's stack
	N     uint64    // permits; 1 for a lock
}

// A Held is an object that has holders.
type Held struct {
	Kind        reflect.Type
	Addr, Bytes uintptr // the extent of the object
	Size        uint64  // permits that there are
	By          []Hold
}

// held has the objects by their address. An object that was dropped while it was held is swept, and the weak pointer distinguishes it
// from a later object at its address.
type held struct {
	by    map[uintptr]*holding
	swept int // how many were left by the last sweep
}

type holding struct {
	Held
	object interface{ alive() bool }
}

type pointer[T any] struct{ weak.Pointer[T] }

func (p pointer[T]) alive() bool { return p.Value() != nil }

// A Holder is a Source whose operation leaves the caller with an object. Took is called then, while the ledger is kept: by the task, with 0, or
// for a continuation, with the address of its function.
type Holder interface{ Took(then Then) }

// A Then is the address of the function of a continuation, or 0 for a task.
type Then uintptr

// A Wanter is a Source that wants several permits.
type Wanter interface{ Wants() Permits }

// Permits is a number of them. It has its own type, as Then has, so that no Source of a user happens to be a Wanter or a Holder.
type Permits uint64

// Took says that the calling task, or else a continuation of this function, holds n of the size permits of object from now on. A Took follows the operation, and
// a Gave precedes it. So an object may be held and not known to be, but never the other way round.
func Took[T any](object *T, n, size uint64, then Then) {
	if n == 0 {
		return
	}
	h := Hold{Since: time.Now(), Stack: []uintptr{uintptr(then) + 1}, N: n}
	if then == 0 {
		h.Who, h.Stack = caller(), callers()
	}
	at := Addr(object)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	if !On() {
		return
	}
	h.Seq = seq.Add(1)
	o := p.held.by[at]
	if o == nil || !o.object.alive() {
		if len(p.held.by) > 2*p.held.swept+16 {
			p.held.sweep()
		}
		o = &holding{Held: Held{Kind: reflect.TypeFor[T](), Addr: at, Bytes: reflect.TypeFor[T]().Size()}, object: pointer[T]{weak.Make(object)}}
		put(&p.held.by, at, o)
	}
	o.Size = size
	o.By = append(o.By, h)
}

// Resized says that there are size permits of object from now on.
func Resized[T any](object *T, size uint64) {
	at := Addr(object)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.held.by[at]; o != nil {
		o.Size = size
	}
}

// Gave says that n permits of object are about to be given back. If the calling task holds none, the task that has held
// some for longest gives them back.
func Gave[T any](object *T, n uint64) {
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

// Holds returns the objects that are held, as far as it is known.
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

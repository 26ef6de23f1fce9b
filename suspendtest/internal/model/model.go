// Package model checks the primitives against pure models. It runs random programs on any scheduler. The programs start bursts of
// operations, and let some operations be cancelled or time out.
//
// A model holds the state of one object, and ends the waiting operations that are possible in this state. This package handles waiters,
// their order and their cancellation. Started operations and requested cancellations take effect one after another, at any later moment
// and in any order. A run must therefore keep a set of possible worlds. When an operation returns, the run removes the worlds in which
// this result is impossible.
package model

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// An Object is the pure model of a primitive. Its methods change the object in place, but they must not change the elements of its
// slices, because copies share them.
type Object interface {
	Copy() Object

	// Serve makes the next possible change for the waiters, and reports whether it has made a change. Whenever an operation begins or
	// stops waiting, Serve is called until it returns false.
	Serve(w *World) bool
}

// A Mover is an Object that can also change without a new operation. Moves reports whether such a change is possible. Move makes the
// change at any later moment, so that other operations may take effect first.
type Mover interface {
	Object
	Moves() bool
	Move(w *World)
}

// A Quitter is an Object whose Quit is called after the cancellation of an operation that was waiting or held.
type Quitter interface {
	Object
	Quit(w *World, id int)
}

// A Waiter is an operation that waits for an Object, or one case of such an operation.
type Waiter struct {
	ID    int
	Kind  string
	Arg   int
	AsOp  bool // the operation was started with its Op, not with its method
	index int
}

// An op is an operation of a program. It is immutable.
type op struct {
	id     int
	name   string
	calls  []call
	asOp   bool
	try    bool // the operation does not wait
	reason string
}

type call struct {
	obj  int
	kind string
	arg  int
}

// set is a set of ids, each of which must be below 64.
type set uint64

func (s set) has(id int) bool { return s>>id&1 != 0 }
func (s *set) add(id int)     { *s |= 1 << id }

// A World is a possible state of all objects and operations.
type World struct {
	ops       []*op // operations by id; all worlds share them
	objs      []Object
	waiting   []int    // ids in the order of arrival
	coming    set      // ids of started operations that have not taken effect yet
	leaving   set      // ids of operations to be cancelled
	cancelled set      // ids of operations that are cancelled
	held      set      // ids of operations that neither wait nor have ended
	ended     []string // results by id; empty before the operation has ended

	obj      int // the index of the object that is served
	arriving int // the id of the operation that takes effect in this step, or -1
	path     *path
}

func (w *World) copy() *World {
	c := *w
	c.objs = make([]Object, len(w.objs))
	for i, o := range w.objs {
		c.objs[i] = o.Copy()
	}
	c.waiting, c.ended = slices.Clone(w.waiting), slices.Clone(w.ended)
	return &c
}

// Waiting returns the waiters of the served object, in the order of arrival.
func (w *World) Waiting() (all []Waiter) {
	for _, id := range w.waiting {
		for i, c := range w.ops[id].calls {
			if c.obj == w.obj {
				all = append(all, Waiter{ID: id, Kind: c.kind, Arg: c.arg, AsOp: w.ops[id].asOp, index: i})
			}
		}
	}
	return all
}

// Arriving reports whether the operation begins to take effect in this step.
func (w *World) Arriving(id int) bool { return id == w.arriving }

// Cancelled reports whether an operation is cancelled, and Leaving reports whether its cancellation is requested.
func (w *World) Cancelled(id int) bool { return w.cancelled.has(id) }
func (w *World) Leaving(id int) bool   { return w.leaving.has(id) }

// Reason returns the result that the operation has if it is cancelled.
func (w *World) Reason(id int) string { return w.ops[id].reason }

// End ends a waiting operation with the given result.
func (w *World) End(o Waiter, result string) {
	if len(w.ops[o.ID].calls) > 1 {
		result = fmt.Sprintf("case %d: %s", o.index, result)
	}
	w.Finish(o.ID, result)
}

// Finish ends a waiting or held operation with the given result.
func (w *World) Finish(id int, result string) {
	w.dequeue(id)
	w.held &^= 1 << id
	w.ended[id] = result
}

// Hold removes an operation from the waiters, but does not end the operation.
func (w *World) Hold(id int) {
	w.dequeue(id)
	w.held.add(id)
}

func (w *World) dequeue(id int) {
	if i := slices.Index(w.waiting, id); i >= 0 {
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
}

// Choose returns a number below n. A separate world is explored for each such number.
func (w *World) Choose(n int) int { return w.path.choose(n) }

// advance makes one possible event happen, and then serves the waiters.
func (w *World) advance() {
	var can []func()
	for id := range w.ops {
		if w.coming.has(id) {
			can = append(can, func() { w.arrive(id) })
		}
		if w.leaving.has(id) {
			can = append(can, func() { w.cancel(id) })
		}
	}
	for i, o := range w.objs {
		if m, ok := o.(Mover); ok && m.Moves() {
			can = append(can, func() { w.obj = i; m.Move(w); w.serve() })
		}
	}
	can[w.Choose(len(can))]()
}

// atRest reports whether no further event is possible.
func (w *World) atRest() bool {
	return w.coming|w.leaving == 0 && !slices.ContainsFunc(w.objs, func(o Object) bool { m, ok := o.(Mover); return ok && m.Moves() })
}

func (w *World) arrive(id int) {
	w.coming &^= 1 << id
	o := w.ops[id]
	if w.cancelled.has(id) && !o.try {
		w.ended[id] = o.reason
		return
	}
	w.waiting = append(w.waiting, id)
	w.arriving = id
	w.serve()
	w.arriving = -1
	if o.try && slices.Contains(w.waiting, id) {
		w.Finish(id, "no")
		w.serve()
	}
}

func (w *World) cancel(id int) {
	w.leaving &^= 1 << id
	if w.ended[id] != "" {
		return
	}
	w.cancelled.add(id)
	waited := slices.Contains(w.waiting, id)
	if waited {
		w.Finish(id, w.ops[id].reason)
	}
	for i, o := range w.objs {
		if q, ok := o.(Quitter); ok && (waited || w.held.has(id)) && w.concerns(id, i) {
			w.obj = i
			q.Quit(w, id)
		}
	}
	w.serve()
}

func (w *World) concerns(id, obj int) bool {
	return slices.ContainsFunc(w.ops[id].calls, func(c call) bool { return c.obj == obj })
}

// serve calls Serve on the objects until no object can serve a waiter.
func (w *World) serve() {
	if len(w.objs) == 1 {
		for w.obj = 0; w.objs[0].Serve(w); {
		}
		return
	}
	for {
		var can []int
		for i := range w.objs {
			c := w.copy()
			c.obj, c.path = i, new(path)
			if c.objs[i].Serve(c) {
				can = append(can, i)
			}
		}
		if len(can) == 0 {
			return
		}
		w.obj = can[w.Choose(len(can))]
		w.objs[w.obj].Serve(w)
	}
}

// key returns a string that identifies the world. Worlds with the same key cannot be distinguished by the results of operations that are
// not in seen.
func (w *World) key(seen set) string {
	b := make([]byte, 0, 128)
	for _, id := range w.waiting {
		b = append(b, byte(id))
	}
	for _, s := range []set{w.coming, w.leaving, w.cancelled &^ seen, w.held} {
		b = binary.LittleEndian.AppendUint64(b, uint64(s))
	}
	for id, r := range w.ended {
		if r != "" && !seen.has(id) {
			b = append(append(b, byte(id)), r...)
		}
	}
	for _, o := range w.objs {
		b = fmt.Append(b, o)
	}
	return string(b)
}

// successors returns the worlds that can follow w after one step.
func (w *World) successors() (all []*World) {
	for p := new(path); ; {
		c := w.copy()
		c.path, p.at = p, 0
		c.advance()
		c.path = nil
		all = append(all, c)
		if !p.nextPath() {
			return all
		}
	}
}

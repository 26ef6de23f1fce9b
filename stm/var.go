package stm

import (
	"sync/atomic"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Var is a variable that transactions read and write. The zero Var holds the zero T and is ready to use. A Var must not
// be copied.
//
// A Var does not copy the data that its value refers to. To change such data, modify a copy and Set the copy.
type Var[T any] struct {
	_ noCopy
	cell
	box atomicx.Pointer[box[T]] // a nil box means the zero T, of version 0
}

// -C> is a commit, under the guard; -R> is a Get, under no lock; -W> is a transaction that has returned Retry.
//
//	box b, version n   -C> box c, version clock+1    then the clock is published, then the waiters are resumed
//	version <= now     -R>                           b belongs to the snapshot of the reader
//	version > now      -R> now = clock               if all boxes that the reader has seen are still current
//	                   -R> doomed                    otherwise: the run is dropped
//	watched            -W> watched, with a new node  if all boxes that it has seen are still current
//	watched            -C> not watched               each waiter is unlinked everywhere, and then resumed
//
// Invariant: a box is published before the clock reaches its version. So after loading the clock once, a reader
// needs only the box to decide whether the box belongs to its snapshot.
// Debt: a commit must resume each waiter that is linked to a Var that the commit has written.

// A cell is the part of a Var that does not depend on T.
type cell struct {
	self    atomic.Pointer[cell] // the address of this cell once it is in use, to detect copies
	watched list
}

func (c *cell) base() *cell { return c }

// A box holds one value of a Var. A published box never changes, so readers need no lock. A box of a number contains no
// pointers, so the garbage collector does not scan it.
type box[T any] struct {
	head
	value T
}

// A head is the part of a box that the log of reads points to.
type head struct {
	version int64 // the clock value of the commit that publishes the box
}

// A variable is a *Var[T] in the logs of a Tx, for any T.
type variable interface {
	base() *cell
	holds(b *head) bool
	publish(b any, version int64) // b is a *box[T]; the guard is held
}

func (v *Var[T]) holds(b *head) bool { return &v.box.Load().head == b }

func (v *Var[T]) publish(b any, version int64) {
	to := b.(*box[T])
	to.version = version
	v.box.Store(to)
}

// NewVar returns a Var that holds x.
func NewVar[T any](x T) *Var[T] {
	v := new(Var[T])
	v.self.Store(&v.cell)
	v.box.Store(&box[T]{value: x})
	return v
}

// Get returns the value of v in tx: the value of the last Set in tx, or else the value in the snapshot of tx. All Gets of a
// run read the same consistent snapshot, even if the run is dropped later. Get never suspends.
//
// If commits by other transactions have made the snapshot invalid, Get does not return. Get unwinds the function of the
// transaction with a private panic, and the function runs again. Code that recovers this panic, or replaces it with
// another, does not save the run: every later Get panics again, and the run is dropped together with its panic.
//
// Get panics if tx has ended.
func (v *Var[T]) Get(tx *Tx) T {
	if len(tx.writes) > 0 {
		if b := tx.written(&v.cell); b != nil {
			return b.(*box[T]).value
		}
	}
	b := v.load()
	if b == nil {
		b = v.firstBox()
	}
	for b.version > tx.now {
		tx.extend(b.version)
		b = v.load()
	}
	if n := len(tx.reads); n < cap(tx.reads) {
		tx.reads = tx.reads[:n+1]
		tx.reads[n] = read{v, &b.head}
	} else {
		tx.dedupe()
		tx.reads = append(tx.reads, read{v, &b.head})
	}
	return b.value
}

// Set sets v to x. Later Gets in tx return x, and other transactions see x after tx has committed. Set never suspends. If
// tx sets v without reading it, other writes to v do not make tx fail. Set panics if tx has ended.
func (v *Var[T]) Set(tx *Tx, x T) {
	i := tx.settable(&v.cell)
	if i >= tx.level {
		tx.writes[i].to.(*box[T]).value = x
		return
	}
	v.use()
	tx.write(write{&v.cell, v, &box[T]{value: x}, i + 1})
}

// Load returns the value of v outside a transaction. It never suspends. Two Loads do not form a consistent snapshot, but
// the second Load never sees an older state than the first.
//
// Load panics inside a transaction, because its value would not belong to the snapshot, and a Retry would not wait for v.
func (v *Var[T]) Load() T {
	if inside.In() {
		panic("stm: Load called in a transaction: use Get")
	}
	suspend.Point()
	b := v.box.Load()
	if b == nil {
		var zero T
		return zero
	}
	if b.version > clock.Load() { // the commit is in progress, and its other boxes may be unpublished
		awaitCommit()
	}
	return b.value
}

// load returns the box of v, or nil if v is unused or a copy.
func (v *Var[T]) load() *box[T] {
	if b := v.box.Load(); v.self.Load() == &v.cell {
		return b
	}
	return nil
}

// firstBox stores a box with the zero T in an unused v, and returns the box of v. It panics if v is a copy.
func (v *Var[T]) firstBox() *box[T] {
	v.use()
	v.box.CompareAndSwap(nil, new(box[T]))
	return v.box.Load()
}

// use marks c as in use. It panics if c is part of a copied Var.
func (c *cell) use() {
	if c.self.Load() != c && !c.self.CompareAndSwap(nil, c) && c.self.Load() != c { // go vet does not report a copy such as *NewVar(x)
		panic("stm: Var copied")
	}
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

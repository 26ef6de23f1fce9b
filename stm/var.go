package stm

import (
	"sync/atomic"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Var is a variable that transactions read and write. The zero Var holds the zero T and is ready to use. A Var must not
// be copied.
//
// A Var publishes values as they are. Data that a value points to is not a part of the Var: change a copy, and Set that.
//
// -C> is a commit, under the guard; -R> is a Get, under no lock; -W> is a transaction that has returned Retry.
//
//	box b, version n   -C> box c, version clock+1    then the clock is published, then the waiters are resumed
//	version <= now     -R>                           b belongs to the snapshot of the reader
//	version > now      -R> now = clock               if all boxes that the reader has seen are still current
//	                   -R> doomed                    otherwise: the run is dropped
//	watched            -W> watched by one more       if all boxes that it has seen are still current
//	watched            -C> not watched               each waiter is unlinked everywhere, and then resumed
//
// Invariant: a box whose version is at most the clock was reachable before the clock had that value. So a reader that has
// loaded the clock once needs only the box to decide whether it belongs to the snapshot.
// Debt: a commit owes one Resume to each waiter that is linked to a Var that it has written.
type Var[T any] struct {
	_ noCopy
	cell
	box atomicx.Pointer[box[T]] // a Var without a box holds the zero T, of version 0
}

// A cell is the part of a Var that is the same for all T.
type cell struct {
	self    atomic.Pointer[cell] // the cell itself once it is in use, so a copy of it is found out
	watched list
}

func (c *cell) base() *cell { return c }

// A box is one value of a Var. It never changes once it is published, so a reader needs no lock and no second look. A
// box of a number has no pointer, so the garbage collector does not look into it.
type box[T any] struct {
	head
	value T
}

// A head is the part of a box that the log of reads points to.
type head struct {
	version int64 // the value of the clock that publishes it
}

// A variable is a *Var, as the logs of a Tx hold it.
type variable interface {
	base() *cell
	holds(b *head) bool
	publish(b any, version int64) // a *box[T]; under the guard
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

// Get returns what v holds in tx: the value of the last Set of tx, or else the value in the snapshot of tx. All that tx
// reads is of one moment, also in a run that will be dropped. Get never suspends.
//
// If no such moment is left, since others have committed, Get does not return: it unwinds f by a private panic, and f
// runs again. A recover that swallows this panic, or panics with another value, changes nothing: every later Get panics again,
// and the run is dropped, with its panic.
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
		b = v.first()
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

// Set has v hold x once tx has committed, and in tx from now on. It never suspends. A Set without a Get conflicts with no
// other transaction. Set panics if tx has ended.
func (v *Var[T]) Set(tx *Tx, x T) {
	i := tx.settable(&v.cell)
	if i >= tx.level {
		tx.writes[i].to.(*box[T]).value = x
		return
	}
	v.use()
	tx.write(write{&v.cell, v, &box[T]{value: x}, i + 1})
}

// Change is Set for a value that may be the same: it reports whether v holds another value in tx, and only then sets it. So a
// transaction that waits for v is not run again for nothing. Unlike a Set, a Change reads v.
func Change[T comparable](tx *Tx, v *Var[T], x T) bool {
	if v.Get(tx) == x {
		return false
	}
	v.Set(tx, x)
	return true
}

// Load returns what v holds, outside of any transaction. It never suspends. Two Loads are not of one moment; each is of
// the moment in which it is called, so a second Load sees no older state than the first.
//
// Load panics in a transaction: its value would be of another moment than the Gets, and no Retry would wait for a change.
func (v *Var[T]) Load() T {
	if inside.In() {
		panic("stm: Load in a transaction: Get is what was meant")
	}
	suspend.Point()
	b := v.box.Load()
	if b == nil {
		var zero T
		return zero
	}
	if b.version > clock.Load() { // its commit is under way, and other boxes of it are not published yet
		awaitCommit()
	}
	return b.value
}

// load returns the box of v, nil if v is not known to be in use.
func (v *Var[T]) load() *box[T] {
	if b := v.box.Load(); v.self.Load() == &v.cell {
		return b
	}
	return nil
}

// first makes the box of the zero T.
func (v *Var[T]) first() *box[T] {
	v.use()
	v.box.CompareAndSwap(nil, new(box[T]))
	return v.box.Load()
}

// use panics if c is in a copy of a Var.
func (c *cell) use() {
	if c.self.Load() != c && !c.self.CompareAndSwap(nil, c) && c.self.Load() != c { // go vet does not object to *NewVar(x)
		panic("stm: Var copied")
	}
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

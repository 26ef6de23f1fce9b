package stm

import "github.com/braidgo/braid/internal/atomicx"

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
// loaded the clock once knows from a box alone whether the box belongs to its snapshot.
// Debt: a commit owes one Resume to each waiter that is linked to a Var that it has written.
type Var[T any] struct {
	_       noCopy
	box     atomicx.Pointer[box[T]] // nil: the zero T, of version 0
	watched list
}

// A box is one value of a Var. It never changes once it is published, so a reader needs no lock and no second look.
type box[T any] struct {
	of      *Var[T]
	version int64 // the value of the clock that publishes it
	value   T
}

// A value is a *box[T] of any T, for the logs of a Tx.
type value interface {
	current() bool         // whether its Var still holds it
	publish(version int64) // under the guard
	watchers() *list
}

func (b *box[T]) current() bool   { return b.of.box.Load() == b }
func (b *box[T]) watchers() *list { return &b.of.watched }

func (b *box[T]) publish(version int64) {
	b.version = version
	b.of.box.Store(b)
}

// NewVar returns a Var that holds x.
func NewVar[T any](x T) *Var[T] {
	v := new(Var[T])
	v.box.Store(&box[T]{of: v, value: x})
	return v
}

// Get returns what v holds in tx: the value of the last Set of tx, or else the value in the snapshot of tx. All that tx
// reads is of one moment, also in a run that will be dropped. Get never suspends.
//
// If no such moment is left, since others have committed, Get does not return: it unwinds f by a private panic, and f
// runs again. A recover that swallows this panic changes nothing: every later Get panics again, and the run is dropped.
//
// Get panics if tx has ended.
func (v *Var[T]) Get(tx *Tx) T {
	if len(tx.writes) > 0 {
		if w := tx.written(&v.watched); w != nil {
			return w.(*box[T]).value
		}
	}
	b := v.load()
	for b.version > tx.now {
		tx.extend(b.version)
		b = v.load()
	}
	tx.reads = append(tx.reads, b)
	return b.value
}

// Set has v hold x once tx has committed, and in tx from now on. It never suspends. A Set without a Get conflicts with no
// other transaction. Set panics if tx has ended.
func (v *Var[T]) Set(tx *Tx, x T) {
	i := tx.settable(&v.watched)
	if i >= tx.level {
		tx.writes[i].to.(*box[T]).value = x
		return
	}
	tx.write(&v.watched, &box[T]{of: v, value: x}, i)
}

// Load returns what v holds, outside of any transaction. It never suspends. Two Loads are not of one moment; each is of
// the moment in which it is called, so a second Load sees no older state than the first.
func (v *Var[T]) Load() T {
	b := v.box.Load()
	if b == nil {
		var zero T
		return zero
	}
	if b.version > clock.Load() { // its commit is under way, and other boxes of it are not published yet
		settle()
	}
	return b.value
}

// load returns the box of v.
func (v *Var[T]) load() *box[T] {
	if b := v.box.Load(); b != nil && b.of == v {
		return b
	}
	return v.first()
}

// first makes the box of the zero T.
func (v *Var[T]) first() *box[T] {
	v.box.CompareAndSwap(nil, &box[T]{of: v})
	b := v.box.Load()
	if b.of != v { // go vet does not object to *NewVar(x)
		panic("stm: Var copied")
	}
	return b
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Package mvar provides a place that is empty or holds one value: the MVar of Concurrent Haskell (Peyton Jones,
// Gordon and Finne, 1996), first come first served and cancellable.
package mvar

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// An MVar is empty or holds a value. Put waits for it to be empty, Take for it to be full. It is a lock with the
// state that it protects inside, a channel of one, a hand-over between two tasks. The zero MVar is empty and
// ready to use; it must not be copied.
//
// Each end is served in the order in which it was come to, and nobody overtakes. Who reads is served before who
// takes, and takes nothing from them. A value is never lost nor doubled: it is in the MVar, or with the one call
// that took it, or with the Put that failed. If ctx is done first, or already, every operation returns the error of
// the cancellation and has changed nothing; if it succeeds and ctx is done at once, one of them wins.
//
// -P> puts, -T> takes, -M> modifies:
//
//	empty  -P> full     nobody waits to take
//	empty  -P> empty    the first taker that can be resumed has the value
//	full   -T> empty    nobody waits to put
//	full   -T> full     the value of the first putter that can be resumed is in
//	full   -M> out      f has it, and whoever comes waits as at either end
//	out    -M> …        as if what f returned were put into an empty one, before anybody else's
//
// Invariant: full implies no takers and no readers, empty implies no putters.
//
// A Put synchronizes before the return of the operation that gets its value, and one that takes before the return of
// the Put that it makes room for.
type MVar[T any] struct {
	guard   suspend.Guard
	state   state
	value   T // zero unless full
	readers suspend.Queue[T, struct{}]
	takers  suspend.Queue[T, taker[T]]
	putters suspend.Queue[struct{}, T]
}

type state uint8

const (
	empty state = iota
	full
	out
)

// A taker says what becomes of the MVar when it is served.
type taker[T any] struct {
	leaves state // empty, full of v, or out
	v      T
}

// New returns an empty MVar.
func New[T any]() *MVar[T] { return new(MVar[T]) }

// NewFull returns an MVar that holds v.
func NewFull[T any](v T) *MVar[T] { return &MVar[T]{state: full, value: v} }

// Put leaves v in m, suspending the caller while m is not empty. Those who wait to read get v at once, and so does
// the one who has waited longest to take. If Put fails, v is still the caller's.
func (m *MVar[T]) Put(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, put[T]{m, v}, true)
	return err
}

// Take empties m and returns what was in it, suspending the caller while m is not full. It makes room for the one who
// has waited longest to put. A value that has been handed to a Take is returned by it.
func (m *MVar[T]) Take(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*take[T])(m), true)
}

// Read returns what is in m and leaves it there, suspending the caller while m is not full.
func (m *MVar[T]) Read(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*read[T])(m), true)
}

// Swap puts v in the place of what is in m, and returns that, suspending the caller while m is not full. It waits in
// line with those who take. Nobody comes between.
func (m *MVar[T]) Swap(ctx context.Context, v T) (T, error) {
	return suspend.Wait[T](ctx, swap[T]{m, v}, true)
}

// Modify replaces what is in m by what f makes of it, suspending the caller while m is not full. It waits in line with
// those who take. While f runs, which may suspend, m is neither full nor empty, and everybody else waits. If f
// returns an error, Modify returns it, and if f panics or exits, so does Modify; what was in m is back then. A nil f
// panics at once.
func (m *MVar[T]) Modify(ctx context.Context, f func(T) (T, error)) error {
	if f == nil {
		panic("mvar: Modify with a nil function")
	}
	v, err := suspend.Wait[T](ctx, (*checkOut[T])(m), true)
	if err != nil {
		return err
	}
	defer func() {
		m.guard.Lock()
		m.offerLocked(v)
		m.guard.Unlock()
	}()
	next, err := f(v)
	if err == nil {
		v = next
	}
	return err
}

// TryPut leaves v in m if that takes no waiting, and reports whether it did. It never suspends.
func (m *MVar[T]) TryPut(v T) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.putLocked(v)
}

// TryTake empties m if it is full, and reports whether it was. It never suspends.
func (m *MVar[T]) TryTake() (T, bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.takeLocked()
}

// TryRead returns what is in m if it is full, and reports whether it is. It never suspends.
func (m *MVar[T]) TryRead() (T, bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.readLocked()
}

func (m *MVar[T]) putLocked(v T) bool {
	if m.state != empty {
		return false
	}
	m.offerLocked(v)
	return true
}

// offerLocked serves those who wait, beginning with v, the value of an MVar that has none, until a value is left over
// or nobody has one.
func (m *MVar[T]) offerLocked(v T) {
	for {
		m.readers.ResumeAll(v, nil)
		t, ok := m.takers.Resume(v, nil)
		if !ok {
			m.state, m.value = full, v
			return
		}
		switch m.state = t.leaves; t.leaves {
		case full:
			v = t.v
		case out:
			return
		case empty:
			if v, ok = m.putters.Resume(struct{}{}, nil); !ok {
				return
			}
		}
	}
}

func (m *MVar[T]) takeLocked() (v T, ok bool) {
	if m.state != full {
		return v, false
	}
	v = m.value
	if m.value, ok = m.putters.Resume(struct{}{}, nil); !ok { // and nobody waits to take
		m.state = empty
	}
	return v, true
}

func (m *MVar[T]) readLocked() (v T, ok bool) { return m.value, m.state == full }

// Package mvar provides a place that is empty or holds one value: the MVar of Concurrent Haskell (Peyton Jones, Gordon and
// Finne, 1996), first come first served and cancellable.
//
// It replaces a mutex and the field that it protects, if the code that changes the field may wait:
//
//	balance := mvar.NewFull(100)
//	err := balance.Modify(ctx, func(n int) (int, error) {
//		return n - 10, ledger.Write(ctx, -10) // may suspend; an error puts the old value back
//	})
//
// It is also a channel of one, for values that change hands in turn, with Put and Take. A cancelled operation changes nothing.
//
// Use a mutex for several fields that are changed in place, a channel or package chanx for a stream, and a promise for a value that
// never changes.
package mvar

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/suspend"
)

// An MVar is empty or holds a value. Put waits until it is empty, Take until it is full. It is a lock with its state inside, a
// channel of one, or a hand-over between two tasks. The zero MVar is empty and ready to use; it must not be copied.
//
// Each end is served in the order of the calls, and no call overtakes another. Readers are served before takers, but leave the value
// to them. A value is never lost nor doubled. It is in the MVar, with the call that took it, or with the Put that failed.
//
// If ctx is done first, or already, every operation returns the cancellation error and has changed nothing. If success and
// cancellation meet, either may win.
//
// A Put synchronizes before the return of the operation that gets its value. A Take synchronizes before the return of the Put that it
// makes room for.
type MVar[T any] struct {
	// -P> puts, -T> takes, -M> modifies:
	//
	//	empty  -P> full     no taker waits
	//	empty  -P> empty    the first taker that can be resumed has the value
	//	full   -T> empty    no putter waits
	//	full   -T> full     the value of the first putter that can be resumed is in
	//	full   -M> out      f has it, and every other call waits
	//	out    -M> …        as if the result of f were put into an empty MVar, before any other call
	//
	// Invariant: full implies no takers and no readers, empty implies no putters.

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

// A taker says how it leaves the MVar when it is served.
type taker[T any] struct {
	leaves state // empty, full of v, or out
	v      T
}

// New returns an empty MVar.
func New[T any]() *MVar[T] { return new(MVar[T]) }

// NewFull returns an MVar that holds v.
func NewFull[T any](v T) *MVar[T] { return &MVar[T]{state: full, value: v} }

// Put stores v in m. It suspends the caller while m is not empty. All waiting readers get v immediately, and so does the longest
// waiting taker. If Put fails, v is still the caller's.
func (m *MVar[T]) Put(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, put[T]{m, v}, true)
	return err
}

// Take empties m and returns its value. It suspends the caller while m is not full. It makes room for the longest waiting putter. A
// value that was handed to a Take is returned by it.
func (m *MVar[T]) Take(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*take[T])(m), true)
}

// Read returns the value of m but leaves it there. It suspends the caller while m is not full.
func (m *MVar[T]) Read(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*read[T])(m), true)
}

// Swap replaces the value of m by v, and returns the old one, with no other call in between. It suspends the caller while m is not
// full, and queues with the takers.
func (m *MVar[T]) Swap(ctx context.Context, v T) (T, error) {
	return suspend.Wait[T](ctx, swap[T]{m, v}, true)
}

// Modify replaces the value of m by the result of f. It suspends the caller while m is not full, and queues with the takers. f may
// suspend. While it runs, m is neither full nor empty, and all other calls wait.
//
// If f returns an error, Modify returns it. If f panics or exits, so does Modify. In both cases the old value is back in m. A nil f
// panics.
func (m *MVar[T]) Modify(ctx context.Context, f func(T) (T, error)) error {
	if f == nil {
		panic("mvar: Modify with a nil function")
	}
	v, err := suspend.Wait[T](ctx, (*checkOut[T])(m), true)
	if err != nil {
		return err
	}
	if ledger.On() {
		ledger.Took(m, 1, 1, 0)
	}
	defer func() {
		if ledger.On() {
			ledger.Gave(m, 1)
		}
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

// TryPut stores v in m if m is empty, and reports whether it did. It never suspends.
func (m *MVar[T]) TryPut(v T) bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.putLocked(v)
}

// TryTake empties m if it is full, and returns its value and whether it was full. It never suspends.
func (m *MVar[T]) TryTake() (T, bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.takeLocked()
}

// TryRead returns the value of m, and whether m is full. It never suspends.
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

// offerLocked serves the waiters of an MVar without a value, beginning with v, until a value is left over or no putter has
// one.
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
	if m.value, ok = m.putters.Resume(struct{}{}, nil); !ok { // no taker waits
		m.state = empty
	}
	return v, true
}

func (m *MVar[T]) readLocked() (v T, ok bool) { return m.value, m.state == full }

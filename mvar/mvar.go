// Package mvar provides a variable that is empty or holds one value. It is the MVar of Concurrent Haskell (Peyton Jones, Gordon and Finne,
// 1996), but its operations take a context and are served in the order of the calls.
//
// An MVar replaces a mutex and the field that the mutex protects, if the code that changes the field may suspend:
//
//	balance := mvar.NewFull(100)
//	err := balance.Modify(ctx, func(n int) (int, error) {
//		return n - 10, ledger.Write(ctx, -10) // may suspend; an error puts the old value back
//	})
//
// With Put and Take, an MVar is also a channel that buffers one value. A cancelled operation changes nothing.
//
// Use a mutex for several fields that are modified in place, a channel or package chanx for a stream of values, and a promise for a value
// that never changes.
package mvar

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/suspend"
)

// An MVar is empty, or is full and holds a value. Put waits until the MVar is empty, and Take waits until it is full. An MVar can serve as
// a lock that contains the state it protects, or as a channel that buffers one value. The zero MVar is empty and ready to use. An MVar must
// not be copied.
//
// Waiting Puts are served in the order of the calls, and so are waiting Takes, Swaps and Modifies. Readers are served before takers, and
// leave the value in the MVar. A value is never lost or duplicated. Either the MVar holds it, or one call has taken it, or its Put has
// failed.
//
// If ctx is done before the call or during the wait, an operation returns the cancellation error and has changed nothing. If success races
// with the cancellation, either may win.
//
// A Put synchronizes before the return of the operation that gets its value. A Take synchronizes before the return of the Put that stores
// the next value.
type MVar[T any] struct {
	// -P> is a Put, -T> a Take, -M> a Modify.
	//
	//	empty  -P> full     no taker waits
	//	empty  -P> empty    the first taker that can be resumed gets the value
	//	full   -T> empty    no putter waits
	//	full   -T> full     the value of the first putter that can be resumed is stored
	//	full   -M> out      the function has the value, and every other call waits
	//	out    -M> …        the function's result is put as into an empty MVar, before any other call
	//
	// Invariant: a full MVar has no takers and no readers, and an empty MVar has no putters.

	guard   suspend.Guard
	state   state
	value   T // zero unless the state is full
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

// A taker is the payload of a waiter in takers. It says in which state the waiter leaves the MVar.
type taker[T any] struct {
	leaves state // is empty, full (with the value v), or out
	v      T
}

// New returns an empty MVar.
func New[T any]() *MVar[T] { return new(MVar[T]) }

// NewFull returns an MVar that holds v.
func NewFull[T any](v T) *MVar[T] { return &MVar[T]{state: full, value: v} }

// Put stores v in m. It suspends the caller while m is not empty. All waiting readers get v immediately, and so does the taker that has
// waited longest. If Put fails, v still belongs to the caller.
func (m *MVar[T]) Put(ctx context.Context, v T) error {
	_, err := suspend.WaitLazily[struct{}](ctx, put[T]{m, v})
	return err
}

// Take empties m and returns its value. It suspends the caller while m is not full. The Put that has waited longest then stores its value.
// Once a Take has been handed a value, it returns this value, even if ctx ends before Take returns.
func (m *MVar[T]) Take(ctx context.Context) (T, error) {
	return suspend.WaitLazily[T](ctx, (*take[T])(m))
}

// Read returns the value of m, but does not take it. It suspends the caller while m is not full.
func (m *MVar[T]) Read(ctx context.Context) (T, error) {
	return suspend.WaitLazily[T](ctx, (*read[T])(m))
}

// Swap atomically replaces the value of m with v, and returns the old value. It suspends the caller while m is not full, and queues it with
// the takers.
func (m *MVar[T]) Swap(ctx context.Context, v T) (T, error) {
	return suspend.WaitLazily[T](ctx, swap[T]{m, v})
}

// Modify replaces the value of m with the result of f. It suspends the caller while m is not full, and queues it with the takers. The
// function f may suspend. While f runs, m is neither full nor empty, and all other calls wait.
//
// If f returns an error, Modify returns this error. If f panics or calls runtime.Goexit, so does Modify. In all these cases m holds the old
// value again. Modify panics if f is nil.
func (m *MVar[T]) Modify(ctx context.Context, f func(T) (T, error)) error {
	if f == nil {
		panic("mvar: Modify with a nil function")
	}
	v, err := suspend.WaitLazily[T](ctx, (*checkOut[T])(m))
	if err != nil {
		return err
	}
	ledger.Took(m)
	defer func() {
		ledger.Gave(m)
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

// TryTake takes the value of m if m is full, and reports whether it did. It never suspends.
func (m *MVar[T]) TryTake() (T, bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.takeLocked()
}

// TryRead returns the value of m, and reports whether m is full. It never suspends.
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

// offerLocked passes v, and then the values of waiting putters, to the waiters of m, which must have no value. It stops when a value is
// left for which no taker waits, when a Modify takes the value, or when no putter is left. The caller must hold m.guard.
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
	if m.value, ok = m.putters.Resume(struct{}{}, nil); !ok { // no taker waits, because m was full
		m.state = empty
	}
	return v, true
}

func (m *MVar[T]) readLocked() (v T, ok bool) { return m.value, m.state == full }

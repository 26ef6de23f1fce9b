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
// Both ends are served in the order in which they came, and nobody overtakes: a Put that finds an empty MVar
// fills it only if no earlier Put waits. A value is never lost nor doubled: it is in the MVar, with the one Take
// that returned it, or with the Put that failed.
//
//	         -Put>  full           takers empty: the value is stored
//	empty    -Put>  empty          takers waiting: the first that can be resumed gets the value
//	full     -Take> empty          putters empty
//	full     -Take> full           putters waiting: the value of the first that can be resumed is stored
//
// Invariant: full implies no takers; empty implies no putters.
type MVar[T any] struct {
	_       noCopy
	guard   suspend.Guard
	full    bool
	value   T
	takers  suspend.Queue[T, struct{}]
	putters suspend.Queue[struct{}, T]
}

// New returns an empty MVar.
func New[T any]() *MVar[T] { return new(MVar[T]) }

// NewFull returns an MVar that holds v.
func NewFull[T any](v T) *MVar[T] { return &MVar[T]{full: true, value: v} }

// Put leaves v in m, suspending the caller while m is full. Who waits in Take gets v at once, the longest waiting
// first. If ctx is done first, or already, Put returns the error of the cancellation and v is still the caller's.
// If v is taken and ctx is done at once, one of them wins, and Put returns nil exactly if v is in m or taken.
//
// A Put synchronizes before the return of the Take that gets its value, and a Take before the return of the Put
// that it makes room for.
func (m *MVar[T]) Put(ctx context.Context, v T) error {
	_, err := suspend.Wait(ctx, &m.guard, &m.putters, v, func() (struct{}, bool) { return struct{}{}, m.putLocked(v) })
	return err
}

// Take empties m and returns what was in it, suspending the caller while m is empty. It makes room for who waits
// in Put, the longest waiting first. If ctx is done first, or already, Take returns the error of the cancellation
// and m is unchanged. If a value arrives and ctx is done at once, one of them wins; a value that has been handed
// to a Take is returned by it.
func (m *MVar[T]) Take(ctx context.Context) (T, error) {
	return suspend.Wait(ctx, &m.guard, &m.takers, struct{}{}, m.takeLocked)
}

// TryPut leaves v in m if that takes no waiting, and reports whether it did. It never suspends.
func (m *MVar[T]) TryPut(v T) bool {
	m.guard.Lock()
	ok := m.putLocked(v)
	m.guard.Unlock()
	return ok
}

// TryTake empties m if it is full, and reports whether it was. It never suspends.
func (m *MVar[T]) TryTake() (T, bool) {
	m.guard.Lock()
	v, ok := m.takeLocked()
	m.guard.Unlock()
	return v, ok
}

func (m *MVar[T]) putLocked(v T) bool {
	if m.full {
		return false
	}
	if _, ok := m.takers.Resume(v, nil); !ok {
		m.value, m.full = v, true
	}
	return true
}

func (m *MVar[T]) takeLocked() (v T, ok bool) {
	if !m.full {
		return v, false
	}
	v = m.value
	m.value, m.full = m.putters.Resume(struct{}{}, nil)
	return v, true
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

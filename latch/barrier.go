package latch

import (
	"context"
	"errors"

	"github.com/braidgo/braid/suspend"
)

// ErrBroken is the error of a Wait at a Barrier in whose round another party was cancelled.
var ErrBroken = errors.New("latch: barrier broken")

// A Barrier is where n tasks, its parties, meet: each waits for all, and then all go on. After that it serves for the
// next round, at once: a party that is early for it does not disturb those that are late to leave the last one. A
// Barrier is made by NewBarrier; it must not be copied. Any task may be a party; who comes is counted, not known.
//
// A round is complete when n have come, and from then on it has happened, for every one of them. A party that is
// cancelled before breaks the round: all that wait in it fail, as they came to meet n. Its end is the beginning of the
// next round, for everybody who comes later, so there is nothing to reset, and a Wait that has failed, for whatever
// reason, leaves nothing behind: to meet, call it again. Not so in Java, where a broken barrier stays broken until all
// have heard of it and one of them resets it; to agree on who and when takes another barrier. The price is that a party
// that has yet to come is not told, and waits for the others to come again. Where they do not, give all parties
// contexts that end together.
//
//	0..n-2 wait -W> one more waits
//	n-1 wait    -W> 0 wait          complete: all are resumed
//	1..n-1 wait -C> 0 wait          a party is cancelled: broken, all others are resumed with ErrBroken
//
// Invariant: those in the queue are those of one round, which is not complete, be they cancelled or not.
type Barrier struct {
	n       int // never changes
	guard   suspend.Guard
	parties suspend.Queue[struct{}, suspend.Resumer[struct{}]] // with themselves

	// Those that were cancelled when their round was completed, but had not removed themselves, and have yet to hear
	// that it has happened.
	late map[suspend.Resumer[struct{}]]struct{}
}

// NewBarrier returns a barrier for n parties. It panics if n is less than 1.
func NewBarrier(n int) *Barrier {
	if n < 1 {
		panic("latch: barrier for no parties")
	}
	return &Barrier{n: n}
}

// Wait suspends the caller until n parties wait, itself included. The last one does not suspend: it resumes the others,
// in the order in which they came, and returns. The index is how many parties were still to come when the caller did:
// n-1 for the first, 0 for the last, so exactly one party of each round gets 0.
//
// If ctx is done already, Wait returns -1 and the error of the cancellation, and the round goes on without the caller.
// If ctx is done before the round is complete, the round is broken: Wait returns -1 and the error of the cancellation,
// and to the others that wait, -1 and ErrBroken. A party that is cancelled too late, that is, the round is complete by
// the time that it comes to remove itself, has been counted, and returns as the others do.
//
// Every Wait of a round that is complete is called before any of them returns, and what came before the calls
// synchronizes before the returns.
func (b *Barrier) Wait(ctx context.Context) (index int, err error) {
	var me suspend.Resumer[struct{}]
	counted := false
	defer func() {
		if !counted { // cancelled, or ctx has panicked
			if b.hasHappened(me) {
				err = nil
			} else {
				index = -1
			}
		}
	}()
	_, err = suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		b.guard.Lock()
		defer b.guard.Unlock()
		index = b.n - 1 - b.parties.Len()
		if index == 0 {
			b.completeLocked()
			return struct{}{}, true
		}
		b.parties.Push(r, r)
		me = r
		return struct{}{}, false
	})
	counted = err == nil
	return index, err
}

func (b *Barrier) completeLocked() {
	for b.parties.Len() > 0 {
		if r, ok := b.parties.ResumeHead(struct{}{}, nil); !ok {
			if b.late == nil {
				b.late = make(map[suspend.Resumer[struct{}]]struct{})
			}
			b.late[r] = struct{}{}
		}
	}
}

// hasHappened reports whether the round of a party whose wait has failed is complete all the same. If the party is
// still waiting in it, that breaks it.
func (b *Barrier) hasHappened(me suspend.Resumer[struct{}]) bool {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.parties.Remove(me) {
		b.parties.ResumeAll(struct{}{}, ErrBroken) // who says false was cancelled as well, and has its own error
		return false
	}
	_, happened := b.late[me]
	delete(b.late, me)
	return happened
}

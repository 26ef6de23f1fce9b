package latch

import (
	"context"
	"errors"

	"github.com/braidgo/braid/suspend"
)

// ErrBroken is the error of a Wait at a Barrier in whose round another party was cancelled. To meet nevertheless, call Wait again.
var ErrBroken = errors.New("latch: barrier broken")

// A Barrier is a place where n tasks, its parties, meet. Each waits for all, and then all go on. The next round begins immediately:
// an early party of it does not disturb late parties of the previous round. NewBarrier makes a Barrier, and it must not be copied. Any task may
// be a party, since a Barrier counts calls.
//
// A round is complete when n parties wait, and then it has happened for each party. A party that is cancelled before that
// breaks the round, and all that wait in it fail. Its end is the beginning of the next round, so there is nothing to reset. A failed
// Wait leaves nothing behind: to meet, call it again.
//
// In Java a broken barrier stays broken until one party resets it, and the parties must agree on that one. The price of this design
// is that a missing party does not learn of a broken round. It waits until all other parties come again. Where they do not, give all parties
// contexts that end together.
type Barrier struct {
	// -W> is a Wait, -C> a cancelled one.
	//
	//	0..n-2 wait -W> one more waits
	//	n-1 wait    -W> 0 wait          complete: all are resumed
	//	1..n-1 wait -C> 0 wait          a party is cancelled: broken, all others are resumed with ErrBroken
	//
	// Invariant: the queue holds parties of one round, which is not complete. Some of them may be cancelled.

	n       int // never changes
	guard   suspend.Guard
	parties suspend.Queue[struct{}, suspend.Resumer[struct{}]] // payload: their own Resumers

	// late has the parties that were cancelled when their round was completed, had not removed themselves, and have not
	// returned yet.
	late map[suspend.Resumer[struct{}]]struct{}
}

// NewBarrier returns a barrier for n parties. It panics if n is less than 1.
func NewBarrier(n int) *Barrier {
	if n < 1 {
		panic("latch: barrier for no parties")
	}
	return &Barrier{n: n}
}

// Wait suspends the caller until n parties wait, itself included. The last one does not suspend: it resumes the waiting parties, in the order
// in which they came, and returns. The index is the number of parties that were missing when the caller came: n-1 for the first, 0 for
// the last. So exactly one party of each round gets 0.
//
// If ctx is done already, Wait returns -1 and the cancellation error, but the round goes on without the caller. If ctx is done before
// the round is complete, the round is broken. Then Wait returns -1 and the cancellation error, and the other parties get -1 and
// ErrBroken. A party is cancelled too late if the round is complete before it has removed itself. It counts, and returns like
// the rest.
//
// Every Wait of a complete round is called before any of them returns. Code before the calls synchronizes before the returns. Wait at
// the zero Barrier panics.
func (b *Barrier) Wait(ctx context.Context) (index int, err error) {
	if b.n < 1 {
		panic("latch: Wait at the zero Barrier")
	}
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

// hasHappened reports whether the round of a party whose wait has failed is complete nevertheless. A party that is still
// queued breaks its round.
func (b *Barrier) hasHappened(me suspend.Resumer[struct{}]) bool {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.parties.Remove(me) {
		b.parties.ResumeAll(struct{}{}, ErrBroken) // a refused party was cancelled, too, and has its own error
		return false
	}
	_, happened := b.late[me]
	delete(b.late, me)
	return happened
}

package latch

import (
	"context"
	"errors"

	"github.com/braidgo/braid/suspend"
)

// ErrBroken is the error of a Barrier's Wait if another party of the same round was cancelled. Call Wait again to join the next round.
var ErrBroken = errors.New("latch: barrier broken")

// A Barrier lets n tasks, its parties, wait for each other. When n parties wait, all of them return, and the next round begins immediately.
// A party that calls Wait for the next round does not disturb parties that have not yet returned from the previous round. NewBarrier makes
// a Barrier, which must not be copied. Any task may be a party, because a Barrier only counts calls.
//
// A round is complete when n parties wait, and then succeeds for every party. A party that is cancelled before the round is complete breaks
// the round, so that its other waiting parties fail with ErrBroken. The next round begins when a round breaks, so a Barrier needs no reset.
// A party whose Wait failed no longer counts, and may call Wait again.
//
// In Java, a broken barrier stays broken until one party resets it, and the parties must agree on that party. Here, a party that calls Wait
// after its round broke joins the next round instead, and waits until all other parties call Wait again. If the other parties might not
// call Wait again, give all parties contexts that end together.
//
// A Barrier has no Op. The last party would have to complete the Selects of all others in one step, or of none: if one of them had meanwhile
// performed another case, those before it would have returned from a round that never was complete.
type Barrier struct {
	// -W> is a Wait, -C> a cancelled Wait.
	//
	//	0..n-2 wait -W> 1..n-1 wait
	//	n-1 wait    -W> 0 wait          the round is complete: all parties are resumed
	//	1..n-1 wait -C> 0 wait          the round is broken: all other parties are resumed with ErrBroken
	//
	// Invariant: the queue holds the parties of one incomplete round. Some of them may be cancelled.

	n       int // never changes
	guard   suspend.Guard
	parties suspend.Queue[struct{}, suspend.Resumer[struct{}]] // the payload is the party's own Resumer
	heir    suspend.Heir

	// The map late contains the parties that were cancelled but still queued when their round was completed. A party is removed from the
	// map before its Wait returns.
	late map[suspend.Resumer[struct{}]]struct{}
}

// NewBarrier returns a Barrier for n parties. It panics if n is less than 1.
func NewBarrier(n int) *Barrier {
	if n < 1 {
		panic("latch: NewBarrier with less than one party")
	}
	return &Barrier{n: n}
}

// Wait suspends the caller until n parties wait, including the caller. The last party does not suspend. It resumes the waiting parties, in
// the order of their calls, and returns. The index is the number of parties that were still missing when this call was counted: n-1 for the
// first party, 0 for the last. So exactly one party of each complete round gets 0.
//
// If ctx is done before the call, Wait returns -1 and the cancellation error, and does not break the round. If ctx is done during the wait,
// before the round is complete, the round is broken. Wait then returns -1 and the cancellation error, and the other waiting parties get -1
// and ErrBroken. A cancellation is too late if the round is complete before the waiters of ctx are notified. The party's Wait then succeeds.
//
// In a complete round, every call of Wait synchronizes before the return of every Wait. Wait panics on the zero Barrier.
func (b *Barrier) Wait(ctx context.Context) (index int, err error) {
	if b.n < 1 {
		panic("latch: Wait on the zero Barrier: use NewBarrier")
	}
	var me suspend.Resumer[struct{}]
	counted := false
	defer func() {
		if !counted { // the wait was cancelled, or ctx has panicked
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
		r.LeaveTo(&b.heir, (*inheritor)(b))
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

// hasHappened reports whether the round of the caller, whose Resumer is me, was completed although its wait has failed. If the caller is
// still queued, hasHappened breaks the round.
func (b *Barrier) hasHappened(me suspend.Resumer[struct{}]) bool {
	b.guard.Lock()
	defer b.guard.Unlock()
	if b.parties.Remove(me) {
		b.breakLocked()
		return false
	}
	_, happened := b.late[me]
	delete(b.late, me)
	return happened
}

// breakLocked fails the waiting parties. A party that cannot be resumed was cancelled, and has its own error.
func (b *Barrier) breakLocked() { b.parties.ResumeAll(struct{}{}, ErrBroken) }

// An inheritor is a Barrier. It has a type of its own, so that a Barrier does not export its method.
type inheritor Barrier

// Inherit implements suspend.Inheritor. It breaks the round if a party was cancelled.
func (i *inheritor) Inherit() {
	i.guard.Lock()
	defer i.guard.Unlock()
	waiting := 0
	for range i.parties.Pending() {
		waiting++
	}
	if waiting < i.parties.Len() {
		(*Barrier)(i).breakLocked()
	}
}

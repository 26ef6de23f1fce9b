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
	parties suspend.Queue[struct{}, *party]
}

// A party is a call of Wait that is suspended.
type party struct {
	of    *Barrier
	heir  suspend.Heir
	r     suspend.Resumer[struct{}]
	state partyState // protected by the guard
}

type partyState uint8

const (
	waiting   partyState = iota
	completed            // the round is complete; the party succeeds, even if it could not be resumed
	broken               // the round is broken
)

// NewBarrier returns a Barrier for n parties. It panics if n is less than 1.
func NewBarrier(n int) *Barrier {
	if n < 1 {
		panic("latch: barrier for no parties")
	}
	return &Barrier{n: n}
}

// Wait suspends the caller until n parties wait, including the caller. The last party does not suspend. It resumes the waiting parties, in
// the order of their calls, and returns. The index is the number of parties that were still missing when this call was counted: n-1 for the
// first party, 0 for the last. So exactly one party of each complete round gets 0.
//
// If ctx is done before the call, Wait returns -1 and the cancellation error, and does not break the round. If ctx is done during the wait,
// before the round is complete, the round is broken. Wait then returns -1 and the cancellation error, and the other waiting parties get -1
// and ErrBroken. A cancellation is too late if the round is complete before the party leaves the queue. The party's Wait then succeeds.
//
// In a complete round, every call of Wait synchronizes before the return of every Wait. Wait panics on the zero Barrier.
func (b *Barrier) Wait(ctx context.Context) (index int, err error) {
	if b.n < 1 {
		panic("latch: Wait at the zero Barrier")
	}
	var me *party
	counted := false
	defer func() {
		if !counted { // the wait was cancelled, or ctx has panicked
			if me != nil && me.leave() {
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
			b.endRoundLocked(completed)
			return struct{}{}, true
		}
		me = &party{of: b, r: r}
		b.parties.Push(r, me)
		r.LeaveTo(&me.heir, me)
		return struct{}{}, false
	})
	counted = err == nil
	return index, err
}

// endRoundLocked ends the round with this state, and resumes its parties. A party that cannot be resumed was cancelled. It reads its state
// when it leaves. The caller must hold the guard.
func (b *Barrier) endRoundLocked(state partyState) {
	var err error
	if state == broken {
		err = ErrBroken
	}
	for b.parties.Len() > 0 {
		(*b.parties.Head()).state = state
		b.parties.ResumeHead(struct{}{}, err)
	}
}

// leave breaks the round of p, unless the round has ended. It reports whether the round was completed, although the wait of p has failed.
func (p *party) leave() (happened bool) {
	b := p.of
	b.guard.Lock()
	defer b.guard.Unlock()
	if p.state == waiting {
		b.parties.Remove(p.r)
		p.state = broken
		b.endRoundLocked(broken)
	}
	return p.state == completed
}

// Inherit implements suspend.Inheritor. It breaks the round of p if p was cancelled.
func (p *party) Inherit() {
	b := p.of
	b.guard.Lock()
	defer b.guard.Unlock()
	if p.state == waiting && p.r.Ended() {
		b.endRoundLocked(broken)
	}
}

// Package cond provides a condition variable whose waiters can be cancelled and may be on any scheduler.
package cond

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Cond is a place to wait for a condition on what L protects to have changed. Who changes it signals; who waits
// looks again, in a loop, as somebody else may have held L in between. L is any lock: a mutex.Mutex's Locker, which
// suspends the task alone, or a sync.Mutex, which blocks its thread's other tasks as long as it is contended. A Cond
// must have an L before its first Wait, see New, and must not be copied.
//
// Waiting begins, for Signal and Broadcast, before L is unlocked; waiters are served in that order. A waiter has to
// join the list while L is held, but to unlock L is to run code of somebody else's, which may suspend, signal, or
// panic: not a thing to do inside Suspend's block, where a Queue is joined, nor under the guard. So the list is one of
// our own, whose waiters get their Resumer later. -W> is the waiting task, -S> a Signal or Broadcast.
//
//	         -W> listed              under L; then L is unlocked
//	listed   -W> listed with r       nobody has signalled meanwhile: it suspends
//	listed   -S> signalled           the waiter is on its way to suspend, and will not
//	listed with r -S> free           r is resumed
//	listed with r -S> passed over    r was cancelled: a Signal goes on to the next
//	listed with r -S> signalled      r was cancelled: to a Broadcast, the waiter counts all the same
//	listed[with r], passed over -W> free   it gives up, with the error
//	signalled -W> free
//
// Invariant: first to last are linked both ways and are those that are listed; whenever the guard is free, waited says
// whether there are any.
// Debt: one that is signalled and does not return, as L or its Task panics, owes a Signal to the others: whoever signalled
// it, so after a Broadcast one may be woken that has come since.
type Cond struct {
	// L is held by the caller of Wait, and may be held by that of Signal and Broadcast. It is not to be changed while
	// somebody waits.
	L sync.Locker

	guard       suspend.Guard
	waited      atomicx.Bool // first is not nil; written under the guard
	first, last *waiter
	free        *waiter // by next; as many as ever waited at once
}

// A waiter belongs to one Wait at a time. All of it is under the guard.
type waiter struct {
	prev, next *waiter
	r          suspend.Resumer[struct{}] // zero until its task is about to suspend
	listed     bool
	signalled  bool // before it had r, or by a Broadcast that came too late to resume it
	wait       uint // counts the Waits that it has belonged to
}

// New returns a Cond with the lock l. It panics if l is nil.
func New(l sync.Locker) *Cond {
	if l == nil {
		panic("cond: nil Locker")
	}
	return &Cond{L: l}
}

// Wait unlocks c.L, suspends the caller until it is signalled, and locks c.L again. If ctx is done first, Wait returns
// the error of the cancellation and has used up no signal; if it is done already, L was never unlocked. If a Signal and
// the cancellation come together, one of them wins; a Broadcast wins over a cancellation that it meets. A Wait that has been
// signalled returns nil.
//
// Whatever it returns, the caller holds L then, as before: locking it again cannot be cancelled. There is no Wait as an
// Op, since to wait is to let others have L.
//
// Wait panics if L is nil, and as L.Unlock does if L is not held (that of a sync.Mutex ends the process); nobody is left
// waiting then. A Signal or Broadcast synchronizes before the return of the Wait that it wakes.
func (c *Cond) Wait(ctx context.Context) (err error) {
	l := c.L
	if l == nil {
		panic("cond: nil Locker")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	w, wait := c.join()
	var unlocked, waited, signalled, returned bool
	defer func() {
		if signalled && !returned {
			c.Signal()
		}
	}()
	defer func() {
		if !waited { // L.Unlock has panicked, ctx, Park, or Wait, where suspending is forbidden
			signalled = c.leave(w, wait)
		}
		if unlocked {
			l.Lock()
		}
		returned = waited
	}()
	l.Unlock()
	unlocked = true
	_, err = suspend.Wait[struct{}](ctx, arrival{c, w}, false)
	waited, signalled = true, err == nil
	if err != nil && c.leave(w, wait) {
		signalled, err = true, nil
	}
	return err
}

// Signal wakes the one that has waited longest, if anybody waits; a waiter that is cancelled first does not count. It
// never suspends, and is not remembered.
//
// Where nobody waits, to look is all that it does, and it comes before all who begin to wait later. Who has changed the
// condition under L comes after all who have found it unchanged, and listed themselves, under L.
func (c *Cond) Signal() {
	if !c.waited.Load() {
		return
	}
	c.guard.Lock()
	c.signalLocked()
	c.guard.Unlock()
}

// Broadcast wakes all waiters of this moment, in the order in which they came, and none that begins to wait later. A
// waiter that it wakes may cancel another: that one was waiting as well, and its Wait returns nil. Broadcast never suspends.
func (c *Cond) Broadcast() {
	if !c.waited.Load() {
		return
	}
	c.guard.Lock()
	for c.first != nil {
		if w := c.first; !c.wakeLocked(w) {
			w.signalled = true
		}
	}
	c.guard.Unlock()
}

func (c *Cond) signalLocked() {
	for c.first != nil && !c.wakeLocked(c.first) {
	}
}

// wakeLocked takes w off the list and reports false if it has been cancelled.
func (c *Cond) wakeLocked(w *waiter) bool {
	c.unlinkLocked(w)
	if w.r == (suspend.Resumer[struct{}]{}) {
		w.signalled = true
		return true
	}
	resumed := w.r.Resume(struct{}{}, nil)
	if resumed {
		c.freeLocked(w) // its Wait has no more use for it
	}
	return resumed
}

// join lists the caller as a waiter, for the wait whose number it returns.
func (c *Cond) join() (w *waiter, wait uint) {
	c.guard.Lock()
	w = c.free
	if w == nil {
		w = new(waiter)
	} else {
		c.free = w.next
	}
	w.listed, w.next, w.prev = true, nil, c.last
	if c.last != nil {
		c.last.next = w
	} else {
		c.first = w
		c.waited.Store(true)
	}
	c.last, wait = w, w.wait
	c.guard.Unlock()
	return w, wait
}

// An arrival is the suspension of a waiter that is listed: unless it is signalled already.
type arrival struct {
	*Cond
	w *waiter
}

func (a arrival) Guard() *suspend.Guard { return &a.guard }

func (a arrival) Try() (none struct{}, signalled bool, err error) {
	if signalled = a.w.signalled; signalled {
		a.freeLocked(a.w)
	}
	return none, signalled, nil
}

func (a arrival) Enqueue(r suspend.Resumer[struct{}]) { a.w.r = r } // who resumes it frees w
func (a arrival) Remove(suspend.Resumer[struct{}])    {}            // leave does

// leave takes away a waiter that does not wait any more, and reports whether it was signalled.
func (c *Cond) leave(w *waiter, wait uint) (signalled bool) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if w.wait != wait { // who has resumed it has freed it
		return true
	}
	if w.listed {
		c.unlinkLocked(w)
	}
	signalled = w.signalled
	c.freeLocked(w)
	return signalled
}

func (c *Cond) unlinkLocked(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else if c.first = w.next; c.first == nil {
		c.waited.Store(false)
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		c.last = w.prev
	}
	w.prev, w.next, w.listed = nil, nil, false
}

func (c *Cond) freeLocked(w *waiter) {
	*w = waiter{next: c.free, wait: w.wait + 1}
	c.free = w
}

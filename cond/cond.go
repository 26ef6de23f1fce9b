// Package cond provides a condition variable whose Wait takes a context. Its waiters can be tasks of any scheduler.
//
// The Wait of a sync.Cond cannot be cancelled, and blocks the scheduler's thread. The Wait of a Cond takes a context and suspends only the
// calling task:
//
//	for len(queue) == 0 {
//		if err := notEmpty.Wait(ctx); err != nil {
//			return err // the lock is held again, and no signal is lost
//		}
//	}
//
// Signal wakes the first waiter that is not cancelled. A Signal has no effect if no task waits, so a task must check its condition before
// it waits. Call Wait in a loop, because the condition may be false again when Wait returns.
//
// Use sync.Cond for goroutines that are never cancelled. Use a promise or a latch for an event that happens once, and package chanx for a
// stream of values.
package cond

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A Cond lets tasks wait until the state that L protects has changed. The task that changes the state calls Signal or Broadcast. A waiter
// must check the state in a loop, because another task may lock L and change the state before Wait locks L again.
//
// L can be any lock. A mutex.Mutex suspends only the calling task, but a contended sync.Mutex blocks all tasks of the thread.
// L must be set before the first Wait; New sets it. A Cond must not be copied.
type Cond struct {
	// The caller of Wait must hold L. The caller of Signal or Broadcast may hold L. Do not set L while a task waits.
	L sync.Locker

	// A waiter joins c.listed before it unlocks L, so that a Signal after the Unlock finds the waiter. Waiters are served in the order of
	// the list. L.Unlock is foreign code, which may suspend, signal or panic. It must run neither under the guard nor in the function
	// passed to Suspend, where waiters usually join a suspend.Queue. Therefore a Cond has a separate list, whose waiters get their Resumers
	// later. -W> is the waiting task, -S> a Signal or Broadcast.
	//
	//	         -W> listed              while it holds L, which it then unlocks
	//	listed   -W> listed with r       the waiter is not signalled, and suspends
	//	listed   -S> signalled           the waiter has not suspended, and will not suspend
	//	listed with r -S> free           r is resumed
	//	listed with r -S> passed over    r was cancelled, so a Signal tries the next waiter
	//	listed with r -S> signalled      r was cancelled, but the Wait returns nil after a Broadcast
	//	listed[with r], passed over -W> free   the waiter leaves with the error
	//	signalled -W> free
	//
	// Invariant: while the guard is unlocked, the field waited reports whether any waiter is listed.
	// Debt: a signalled waiter whose Wait does not return, because a method of L or of its Task panics, must pass the Signal on to the next
	// waiter. After a Broadcast, this may wake a waiter that called Wait after the Broadcast.
	guard  suspend.Guard
	waited atomicx.Bool // true if the list is not empty; written under the guard
	listed dlist.List[waiter]
	free   []*node // grows to the largest number of simultaneous waiters
}

// A waiter belongs to at most one Wait. The guard protects all of its fields.
type waiter struct {
	r         suspend.Resumer[struct{}] // is zero until the task is about to suspend
	signalled bool                      // set by a Signal or Broadcast before r was set, or by a Broadcast that could not resume r
	wait      uint                      // the number of earlier Waits that have used this waiter
}

type node = dlist.Node[waiter]

// New returns a Cond with the lock l. It panics if l is nil.
func New(l sync.Locker) *Cond {
	if l == nil {
		panic("cond: nil Locker")
	}
	return &Cond{L: l}
}

// Wait unlocks c.L, suspends the caller until a Signal or Broadcast wakes it, and locks c.L again.
//
// If ctx is done before a signal, Wait returns the cancellation error and consumes no signal. If ctx is done before the call, Wait does not
// unlock L. If a Signal races with the cancellation, either may win. If a Broadcast races with the cancellation, the Broadcast wins. A Wait
// that has consumed a signal returns nil, even if ctx is done by then.
//
// The caller holds L after every return, even if a Kill ends Wait. The final L.Lock cannot be cancelled. There is no WaitOp, because a case
// of a Select would have to unlock L while it waits.
//
// Wait panics if L is nil. If L is not held and L.Unlock panics, so does Wait, but it leaves no waiter behind. (The Unlock of a sync.Mutex
// ends the process.) A Signal or Broadcast synchronizes before the return of the Wait that it wakes.
func (c *Cond) Wait(ctx context.Context) (err error) {
	l := c.L
	if l == nil {
		panic("cond: nil Locker")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	w, wait := c.enlist()
	var unlocked, waited, signalled, returned bool
	defer func() {
		if returned {
			return
		}
		if signalled {
			c.Signal()
		}
		if unlocked {
			if v := recover(); v != nil { // L.Lock has panicked
				panic(v)
			}
			suspend.Shield(l.Lock) // a Kill has ended the first Lock, but the caller's deferred functions will unlock L
		}
	}()
	defer func() {
		if !waited { // L.Unlock, ctx or Park has panicked, or suspend.Wait where suspending is forbidden
			signalled = c.withdraw(w, wait)
		}
		if unlocked {
			l.Lock()
			unlocked = false
		}
		returned = waited
	}()
	l.Unlock()
	unlocked = true
	_, err = suspend.Wait[struct{}](ctx, arrival{c, w})
	waited, signalled = true, err == nil
	if err != nil && c.withdraw(w, wait) {
		signalled, err = true, nil
	}
	return err
}

// Signal wakes the task that has waited longest, if any task waits. It skips waiters that are cancelled already. Signal has no effect if no
// task waits. It never suspends.
//
// Signal takes no lock if no task waits. It cannot miss a task that has seen the old state. Such a task joins the list before it unlocks L,
// and so before another task can change the state.
func (c *Cond) Signal() {
	suspend.Point()
	if !c.waited.Load() {
		return
	}
	c.guard.Relock()
	c.signalLocked()
	c.guard.Unlock()
}

// Broadcast wakes all tasks that wait at the time of the call, in the order of their calls of Wait, and no later waiter. If a task that it
// wakes cancels another of these waiters, the other Wait returns nil nevertheless. Broadcast never suspends.
func (c *Cond) Broadcast() {
	suspend.Point()
	if !c.waited.Load() {
		return
	}
	c.guard.Relock()
	for w := c.listed.First(); w != nil; w = c.listed.First() {
		if !c.wakeLocked(w) {
			w.Value.signalled = true
		}
	}
	c.guard.Unlock()
}

func (c *Cond) signalLocked() {
	for w := c.listed.First(); w != nil && !c.wakeLocked(w); w = c.listed.First() {
	}
}

// wakeLocked removes w from the list and wakes its task. It returns false if the wait has been cancelled.
func (c *Cond) wakeLocked(w *node) bool {
	c.unlistLocked(w)
	if w.Value.r == (suspend.Resumer[struct{}]{}) {
		w.Value.signalled = true
		return true
	}
	resumed := w.Value.r.Resume(struct{}{}, nil)
	if resumed {
		c.freeLocked(w) // the Wait no longer uses w
	}
	return resumed
}

// enlist adds a waiter for the caller to the list. It returns the waiter and the number of this Wait, which must be passed to withdraw.
func (c *Cond) enlist() (w *node, wait uint) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if last := len(c.free) - 1; last >= 0 {
		w, c.free = c.free[last], c.free[:last]
	} else {
		w = new(node)
	}
	c.listed.Push(w)
	c.waited.Store(true)
	return w, w.Value.wait
}

// An arrival is the Source with which a listed waiter suspends. The waiter does not suspend if it is signalled already.
type arrival struct {
	*Cond
	w *node
}

func (a arrival) Guard() *suspend.Guard { return &a.guard }

func (a arrival) Try() (none struct{}, signalled bool, err error) {
	if signalled = a.w.Value.signalled; signalled {
		a.freeLocked(a.w)
	}
	return none, signalled, nil
}

func (a arrival) Enqueue(r suspend.Resumer[struct{}]) { a.w.Value.r = r } // wakeLocked frees w when it resumes r
func (a arrival) Remove(suspend.Resumer[struct{}])    {}                  // c.withdraw removes w

// withdraw frees the waiter of a Wait that has failed, and reports whether the waiter was signalled.
func (c *Cond) withdraw(w *node, wait uint) (signalled bool) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if w.Value.wait != wait { // w has been freed, after a signal
		return true
	}
	c.unlistLocked(w)
	signalled = w.Value.signalled
	c.freeLocked(w)
	return signalled
}

// unlistLocked removes w from the list, if w is listed.
func (c *Cond) unlistLocked(w *node) {
	c.listed.Remove(w)
	if c.listed.First() == nil {
		c.waited.Store(false)
	}
}

func (c *Cond) freeLocked(w *node) {
	w.Value = waiter{wait: w.Value.wait + 1}
	c.free = append(c.free, w)
}

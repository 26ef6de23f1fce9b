// Package cond provides a condition variable whose waiters can be cancelled and may be on any scheduler.
//
// A waiter of sync.Cond cannot give up, and it blocks the thread of its scheduler. Here Wait takes a context and suspends only its
// task:
//
//	for len(queue) == 0 {
//		if err := notEmpty.Wait(ctx); err != nil {
//			return err // the lock is held, and no signal is used up
//		}
//	}
//
// A Signal wakes the first waiter that has not given up. Signals are not remembered, so a waiter looks at its condition in a loop.
//
// Use sync.Cond between goroutines that never give up. Use a promise or a latch for an event that happens once, and package chanx
// for a stream of values.
package cond

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A Cond is a place to wait until the state that L protects has changed. The task that changes it calls Signal or Broadcast. A
// waiter looks again, in a loop, since another task may have held L in between.
//
// L is any lock. The Locker of a mutex.Mutex suspends the task alone. But a contended sync.Mutex blocks all tasks of its thread. A Cond needs its L before the first Wait, see New, and must not be copied.
type Cond struct {
	// L is held by the caller of Wait. The caller of Signal or Broadcast may hold it. It must not change while a task
	// waits.
	L sync.Locker

	// For Signal and Broadcast, waiting begins before L is unlocked, and waiters are served in that order. So a waiter joins
	// the list while it holds L. To unlock L is to run foreign code, which may suspend, signal or panic. It may run neither in
	// Suspend's block, where a Queue is joined, nor under the guard. So this is a separate list, whose waiters get their
	// Resumer later. -W> is the waiting task, -S> a Signal or Broadcast.
	//
	//	         -W> listed              under L; then L is unlocked
	//	listed   -W> listed with r       no signal has come meanwhile: it suspends
	//	listed   -S> signalled           the waiter is about to suspend, and will not
	//	listed with r -S> free           r is resumed
	//	listed with r -S> passed over    r was cancelled: a Signal goes on to the next
	//	listed with r -S> signalled      r was cancelled: a Broadcast counts the waiter all the same
	//	listed[with r], passed over -W> free   it gives up, with the error
	//	signalled -W> free
	//
	// Invariant: whenever the guard is free, waited says whether any are listed.
	// Debt: a signalled waiter that does not return, because L or its Task panics, must pass the Signal on to the next waiter. After a
	// Broadcast this may wake a waiter that came later.
	guard  suspend.Guard
	waited atomicx.Bool // listed is not empty; written under the guard
	listed dlist.List[waiter]
	free   []*node // grows to the largest number of waiters
}

// A waiter belongs to at most one Wait. All of it is under the guard.
type waiter struct {
	r         suspend.Resumer[struct{}] // zero until its task is about to suspend
	signalled bool                      // before it had r, or by a Broadcast that came too late to resume it
	wait      uint                      // counts the Waits that it has belonged to
}

type node = dlist.Node[waiter]

// New returns a Cond with the lock l. It panics if l is nil.
func New(l sync.Locker) *Cond {
	if l == nil {
		panic("cond: nil Locker")
	}
	return &Cond{L: l}
}

// Wait unlocks c.L, suspends the caller until it is signalled, and locks c.L again.
//
// If ctx is done first, Wait returns the cancellation error and has used up no signal. If ctx is done already, L is not unlocked at
// all. If a Signal and the cancellation meet, either may win. A Broadcast wins over a cancellation that it meets. A Wait that was
// signalled returns nil.
//
// The caller holds L after every return, and also if a Kill ends Wait. Locking it again cannot be cancelled. There is no Wait
// as an Op, since a waiting case would have to give L away.
//
// Wait panics if L is nil. If L is not held, it panics as L.Unlock does (a sync.Mutex ends the process). No waiter is left behind
// then. A Signal or Broadcast synchronizes before the return of the Wait that it wakes.
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
			suspend.Shield(l.Lock) // again, as a Kill has ended the first: the deferred functions of the caller unlock it
		}
	}()
	defer func() {
		if !waited { // L.Unlock has panicked, ctx, Park, or Wait, where suspending is forbidden
			signalled = c.leave(w, wait)
		}
		if unlocked {
			l.Lock()
			unlocked = false
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

// Signal wakes the longest waiting task, if there is one. A waiter that is cancelled first does not count. Signal never suspends, and
// is not remembered.
//
// With no waiter it takes no lock, and comes before every later Wait. A task that has changed the condition under L comes after all
// tasks that found it unchanged, as those joined the list under L.
func (c *Cond) Signal() {
	suspend.Point()
	if !c.waited.Load() {
		return
	}
	c.guard.Relock()
	c.signalLocked()
	c.guard.Unlock()
}

// Broadcast wakes all waiters of this moment, in the order in which they came, and no later one. A waiter that it wakes may cancel
// another waiter. The other was waiting, too, so its Wait returns nil. Broadcast never suspends.
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

// wakeLocked takes w off the list and reports false if it has been cancelled.
func (c *Cond) wakeLocked(w *node) bool {
	c.unlistLocked(w)
	if w.Value.r == (suspend.Resumer[struct{}]{}) {
		w.Value.signalled = true
		return true
	}
	resumed := w.Value.r.Resume(struct{}{}, nil)
	if resumed {
		c.freeLocked(w) // its Wait has no more use for it
	}
	return resumed
}

// join lists the caller as a waiter, for the wait whose number it returns.
func (c *Cond) join() (w *node, wait uint) {
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

// An arrival is the suspension of a waiter that is listed: unless it is signalled already.
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

func (a arrival) Enqueue(r suspend.Resumer[struct{}]) { a.w.Value.r = r } // its Resume frees w
func (a arrival) Remove(suspend.Resumer[struct{}])    {}                  // leave does

// leave takes away a waiter that does not wait any more, and reports whether it was signalled.
func (c *Cond) leave(w *node, wait uint) (signalled bool) {
	c.guard.Lock()
	defer c.guard.Unlock()
	if w.Value.wait != wait { // the Resume has freed it
		return true
	}
	c.unlistLocked(w)
	signalled = w.Value.signalled
	c.freeLocked(w)
	return signalled
}

// unlistLocked takes w off the list, if it is listed.
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

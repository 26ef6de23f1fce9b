// Package latch provides a Latch, which opens after a number of events, and a Barrier, at which a fixed number of tasks wait for each other.
// A Latch opens once. A Barrier has any number of rounds. Both have a Wait that takes a context and works on any scheduler.
//
// The Wait of a sync.WaitGroup takes no context, and cannot be a case of a select without an extra goroutine. The Wait of a Latch takes a
// context, and WaitOp returns a case for a Select:
//
//	ready := latch.New(3) // three servers
//	...
//	if err := ready.Wait(ctx); err != nil {
//		return err
//	}
//
// Use sync.WaitGroup where no wait is cancelled. Use package scope where the number of tasks grows, or where one failure cancels the other
// tasks. Use a promise if the event has a value.
package latch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Latch is closed until its count has reached zero, and stays open from then on. New makes a Latch. The zero Latch is open. A Latch must
// not be copied. Any task may count down, and any task may wait. Waiting for an open Latch takes no lock.
type Latch struct {
	// -D> is a CountDown.
	//
	//	n closed -D> n-1 closed   n > 1
	//	1 closed -D> open         under the guard, where all waiters are resumed
	//
	// Invariant: an open Latch has no waiters. A Wait fails only if the count is not zero when it returns, so a waiter whose cancellation
	// is too late returns nil.

	count   atomicx.Uint64 // never increases; becomes 0 under guard
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, struct{}]
	done    chan struct{} // made by Done
}

// New returns a Latch that opens after n calls of CountDown. It panics if n is negative.
func New(n int) *Latch {
	if n < 0 {
		panic("latch: negative count")
	}
	l := new(Latch)
	l.count.Store(uint64(n))
	return l
}

// CountDown decrements the count. The call that reaches zero opens l and resumes all waiters, in the order of their calls. CountDown never
// suspends. If l is open already, CountDown panics and changes nothing.
//
// Every CountDown synchronizes before the return of every Wait that returns nil.
func (l *Latch) CountDown() {
	suspend.Point()
	for {
		n := l.count.Load()
		if n <= 1 {
			l.open()
			return
		}
		if l.count.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// open opens l, or panics if l is open already. The count must be at most 1; from then on, it changes only under the guard.
func (l *Latch) open() {
	l.guard.Relock()
	defer l.guard.Unlock()
	if l.isOpen() {
		panic("latch: CountDown below zero")
	}
	l.count.Store(0)
	l.waiters.ResumeAll(struct{}{}, nil) // a waiter that cannot be resumed checks the count
	if l.done != nil {
		close(l.done)
	}
}

// Wait suspends the caller until l is open. If ctx is done before the call, Wait returns the cancellation error, even if l is open. If ctx
// is done during the wait, Wait returns the cancellation error, or nil if l is open by the time Wait returns.
func (l *Latch) Wait(ctx context.Context) error {
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil || l.isOpen() {
		return err
	}
	_, err := suspend.Wait[struct{}](ctx, (*wait)(l))
	if l.isOpen() {
		return nil
	}
	return err
}

// TryWait reports whether l is open. It never suspends.
func (l *Latch) TryWait() bool {
	suspend.Point()
	return l.isOpen()
}

func (l *Latch) isOpen() bool { return l.count.Load() == 0 }

// WaitOp returns an Op that performs Wait. A cancelled Op fails, even if l opens before the Op returns.
func (l *Latch) WaitOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}]((*wait)(l)) }

// Done returns a channel that is closed when l opens, for Go's select statement. Successive calls of Done return the same channel.
func (l *Latch) Done() <-chan struct{} {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.isOpen() {
			close(l.done)
		}
	}
	return l.done
}

// A wait is the Source of Wait and WaitOp.
type wait Latch

func (w *wait) Guard() *suspend.Guard               { return &w.guard }
func (w *wait) Try() (v struct{}, ok bool, _ error) { return v, (*Latch)(w).isOpen(), nil }
func (w *wait) Enqueue(r suspend.Resumer[struct{}]) { w.waiters.Push(r, struct{}{}) }
func (w *wait) Remove(r suspend.Resumer[struct{}])  { w.waiters.Remove(r) }

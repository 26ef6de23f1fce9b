// Package latch provides two ways for tasks to wait until a number of events have happened. A Latch opens once. At a Barrier the
// same number of tasks meet again and again. Both can be waited for with a context, from any scheduler.
//
// A sync.WaitGroup cannot be waited for with a context, and needs a goroutine to be a case of a select. A Latch needs neither:
//
//	ready := latch.New(3) // three servers
//	...
//	if err := ready.Wait(ctx); err != nil {
//		return err
//	}
//
// Use sync.WaitGroup where no task is cancelled. Use package scope where the number of tasks grows, or where a failure cancels the
// rest. Use a promise if the event has a value.
package latch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Latch is closed until it has been counted down to zero. Then it is open for good. New makes a Latch, and it must not be copied.
// The zero Latch is open. Any task may count down, and any task may wait. Waiting for an open Latch takes no lock.
type Latch struct {
	// -D> is a CountDown.
	//
	//	n closed -D> n-1 closed   n > 1
	//	1 closed -D> open         under the guard: all waiters are resumed
	//
	// Invariant: an open Latch has no waiters. The count decides, and no Resume does: a waiter that was cancelled too late
	// finds the latch open.

	count   atomicx.Uint64 // only falls; to 0 under guard
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, struct{}]
	done    chan struct{} // made on demand
}

// New returns a latch that n calls of CountDown open. It panics if n is negative.
func New(n int) *Latch {
	if n < 0 {
		panic("latch: negative count")
	}
	l := new(Latch)
	l.count.Store(uint64(n))
	return l
}

// CountDown counts down by one. The call that reaches zero opens l and resumes all waiters, in the order in which they came. It never
// suspends. It panics, and changes nothing, if l is open already.
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

// open is the last CountDown, or one too many. The count is at most 1, and changes only under the guard.
func (l *Latch) open() {
	l.guard.Relock()
	defer l.guard.Unlock()
	if l.isOpen() {
		panic("latch: CountDown below zero")
	}
	l.count.Store(0)
	l.waiters.ResumeAll(struct{}{}, nil) // a refused waiter looks at the count
	if l.done != nil {
		close(l.done)
	}
}

// Wait suspends the caller until l is open. If ctx is done first, or already, it returns the cancellation error. A caller that was
// cancelled while it waited returns nil if l is open by the time of its return.
func (l *Latch) Wait(ctx context.Context) error {
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil || l.isOpen() {
		return err
	}
	_, err := suspend.Wait[struct{}](ctx, (*wait)(l), false)
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

// WaitOp is Wait as an Op. A cancelled one fails, even if l has been opened since.
func (l *Latch) WaitOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}]((*wait)(l)) }

// Done returns a channel that is closed when l is opened, for a native select. It is always the same one.
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

// Package latch provides two ways for tasks to wait until a number of things have happened: a Latch, which opens once,
// and a Barrier, at which the same number of tasks meet again and again. Both can be waited for with a context, from
// any scheduler.
package latch

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Latch is closed until it has been counted down to zero; then it is open, and stays so. It is made by New, and must
// not be copied; the zero Latch is open. Who counts down need not wait, and who waits need not count down. Waiting for
// an open one takes no lock.
//
//	n closed -D> n-1 closed   CountDown, n > 1
//	1 closed -D> open         under the guard: all who wait are resumed
//
// Invariant: open implies that nobody waits. What has happened is decided by the count, not by who could be resumed: a
// waiter that was cancelled too late finds the latch open.
type Latch struct {
	count   atomicx.Uint64 // only falls; to 0 under guard
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, struct{}]
	done    chan struct{} // nil until asked for
}

// New returns a latch that is to be counted down n times. It panics if n is negative.
func New(n int) *Latch {
	if n < 0 {
		panic("latch: negative count")
	}
	l := new(Latch)
	l.count.Store(uint64(n))
	return l
}

// CountDown counts down by one. The call that comes to zero opens l and resumes all who wait, in the order in which
// they came. It never suspends, and panics, changing nothing, if l is open already.
//
// Every CountDown synchronizes before the return of every Wait that returns nil.
func (l *Latch) CountDown() {
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

// open is the last CountDown, or one too many: the count is not above 1, and nobody else changes it without the guard.
func (l *Latch) open() {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.TryWait() {
		panic("latch: CountDown below zero")
	}
	l.count.Store(0)
	l.waiters.ResumeAll(struct{}{}, nil) // who says false will look at the count
	if l.done != nil {
		close(l.done)
	}
}

// Wait suspends the caller until l is open. If ctx is done first, or already, it returns the error of the cancellation;
// but if l has been opened by the time that a caller cancelled while it waited comes to return, it returns nil.
func (l *Latch) Wait(ctx context.Context) error {
	if err := suspend.Err(ctx); err != nil || l.TryWait() {
		return err
	}
	_, err := suspend.Wait[struct{}](ctx, (*wait)(l), false)
	if l.TryWait() {
		return nil
	}
	return err
}

// TryWait reports whether l is open. It never suspends.
func (l *Latch) TryWait() bool { return l.count.Load() == 0 }

// WaitOp is Wait as an Op; one that is cancelled fails, even if l has been opened since.
func (l *Latch) WaitOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}]((*wait)(l)) }

// Done returns a channel that is closed when l is opened, for a native select. It is always the same one.
func (l *Latch) Done() <-chan struct{} {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.TryWait() {
			close(l.done)
		}
	}
	return l.done
}

// A wait is what Wait and WaitOp perform.
type wait Latch

func (w *wait) Guard() *suspend.Guard               { return &w.guard }
func (w *wait) Try() (v struct{}, ok bool, _ error) { return v, (*Latch)(w).TryWait(), nil }
func (w *wait) Enqueue(r suspend.Resumer[struct{}]) { w.waiters.Push(r, struct{}{}) }
func (w *wait) Remove(r suspend.Resumer[struct{}])  { w.waiters.Remove(r) }

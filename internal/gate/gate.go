// Package gate provides permits that are granted strictly in the order of the requests. It implements semaphore.Semaphore, and
// mutex.RWMutex, whose writer takes all permits.
package gate

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// These are the errors of package semaphore.
var (
	ErrTooLarge = errors.New("semaphore: request for more permits than the semaphore has")
	ErrClosed   = outcome.Named("semaphore: closed", suspend.ErrClosed)
)

// Max is the largest number of permits of a Gate.
const Max = 1<<63 - 1

// A Gate grants permits. One call can take or release several permits. A waiting task holds none of its permits. All of them are handed over
// to the task before it resumes. No task overtakes another. In short:
//
//	Acquire             without waiters and with enough free permits: one CAS. Otherwise, under the guard, it takes them or queues.
//	Release             without waiters: one CAS. Otherwise, under the guard, it gives them back and calls grantLocked.
//	grantLocked         resumes the first waiter as long as that fits, and stops at one that does not
//	a cancelled waiter  leaves the queue and calls grantLocked, because it may have been the one that did not fit
//
// Compared with the semaphore of x/sync, which locks a mutex in each call, a Gate has a fast path, Resize and Close. And if a waiter is cancelled,
// those behind it get their permits at once, even if the scheduler of the cancelled waiter is busy.
type Gate struct {
	// The word holds the number of permits that tasks hold, in units of the constant one, and the flag waiting. The guard protects the
	// other fields. -A> is an Acquire, -R> a Release, -C> a cancelled Acquire.
	//
	//	held          -A> held            enough are free
	//	held          -A> held+waiting    too few are free: the task queues
	//	held          -R> held
	//	held+waiting  -A> held+waiting    the task queues
	//	held+waiting  -R> held[+waiting]  the first waiters that fit are granted their permits
	//	held+waiting  -C> held[+waiting]  the same, because the cancelled waiter may have been the first that did not fit
	//
	// After a Resize or a Close, the flag waiting stays set, so that every operation looks at the other fields, under the guard.
	//
	// Invariant: while the guard is unlocked and no task has the debt, the first waiter does not fit, and was not cancelled.
	// Invariant: while the flag waiting is set, the word changes only under the guard. While the queue has waiters, the flag is set. The
	// converse may fail. A task that was cancelled before it queued, or a Select that chose another case, may leave the flag set. The next
	// operation clears the flag.
	// Debt: a task that releases permits, or leaves the queue with an error, must call grantLocked. So must the
	// goroutine that ends the context of a waiter, see Inherit: the task of the waiter may not run for a long time.
	word    atomicx.Uint64
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, uint64] // the payload is the number of permits
	heir    suspend.Heir

	// The number of permits. Callers pass it with each call, because a zero Gate cannot have it: the zero Semaphore has no permits, and the
	// zero RWMutex has all. After a Resize or a Close, the argument has no effect.
	size    uint64
	changed bool // there was a Resize or a Close
	closed  bool
}

// The number of held permits is stored above the flag waiting, in units of the constant one.
const (
	waiting uint64 = 1 << iota
	one
)

// Acquire takes n permits. It suspends the caller, is cancelled and fails as Semaphore.Acquire does.
func (g *Gate) Acquire(ctx context.Context, n, size uint64) error {
	if !preempt.On() {
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		if n <= size {
			if ok, _ := g.tryTake(n, size); ok {
				return nil
			}
		}
	}
	_, err := suspend.Wait[struct{}](ctx, Request{g, n, size})
	return err
}

// TryAcquire takes n permits if they are free and no task waits, and reports whether it did.
func (g *Gate) TryAcquire(n, size uint64) bool {
	if preempt.On() {
		return g.tryReported(n, size)
	}
	if n <= size {
		if ok, sure := g.tryTake(n, size); sure {
			return ok
		}
	}
	return g.tryAcquireSlow(n, size)
}

func (g *Gate) tryAcquireSlow(n, size uint64) bool {
	g.guard.Relock()
	defer g.guard.Unlock()
	ok := g.refusedLocked(n, size) == nil && g.takeLocked(n)
	g.grantLocked() // also opens the fast paths again, which takeLocked has closed
	return ok
}

// Release releases n permits if the number of held permits lies between least and most, and reports whether it did.
func (g *Gate) Release(n, least, most uint64) bool {
	if preempt.On() {
		g.gives(n)
	}
	for {
		w := g.word.Load()
		switch {
		case w&waiting != 0:
			return g.releaseSlow(n, least, most)
		case w/one < least || w/one > most:
			return false
		case g.word.CompareAndSwap(w, w-n*one):
			return true
		}
	}
}

func (g *Gate) releaseSlow(n, least, most uint64) bool {
	g.guard.Relock()
	defer g.guard.Unlock()
	held := g.closeLocked()
	ok := least <= held && held <= most
	if ok {
		g.word.Add(-n * one)
	}
	g.grantLocked()
	return ok
}

// tryTake takes n permits if no task waits, and reports whether it did. If the result sure is false, the caller must decide under the guard.
func (g *Gate) tryTake(n, size uint64) (ok, sure bool) {
	for {
		w := g.word.Load()
		switch {
		case w&waiting != 0:
			return false, false
		case n > size-w/one:
			return false, true
		case g.word.CompareAndSwap(w, w+n*one):
			return true, true
		}
	}
}

// takeLocked takes n permits if they are free and no task waits. If it returns false, the fast paths are closed, and the caller may
// queue. The caller must hold g.guard, and must have called refusedLocked.
func (g *Gate) takeLocked(n uint64) bool {
	held := g.closeLocked()
	// A first waiter that was cancelled, or is a Select that has chosen another case, is no reason to wait.
	if n <= g.freeLocked(held) && g.waiters.Len() > 0 && g.waiters.DropEnded() {
		g.grantLocked()
		held = g.closeLocked()
	}
	if g.waiters.Len() > 0 || n > g.freeLocked(held) {
		return false
	}
	g.storeLocked(held + n)
	return true
}

// grantLocked resumes the first waiters with their permits, until too few are free for the next waiter. The caller must hold g.guard.
//
// A grant may meet a cancellation in four places. Here, DropEnded removes a first waiter that was cancelled, and ResumeHead returns false if the
// cancellation comes after that. Inherit is called when the context of the first waiter ends, before its task runs. Remove is called by the task
// itself. Each of the four ends with a grantLocked, so the permits that the waiter does not take go to those behind it.
func (g *Gate) grantLocked() {
	held := g.closeLocked()
	for n := g.waiters.Head(); n != nil; n = g.waiters.Head() {
		err := g.refusedLocked(*n, g.size)
		if err == nil && *n > g.freeLocked(held) {
			if g.waiters.DropEnded() {
				continue
			}
			break // no waiter is skipped: a writer, which wants all permits, would starve behind readers that want one each
		}
		// If the result ok is false, the waiter was cancelled first, and its permits stay free.
		if n, ok := g.waiters.ResumeHead(struct{}{}, err); ok && err == nil {
			held += n
		}
	}
	g.storeLocked(held)
}

// Inherit implements suspend.Inheritor. A cancelled waiter that is not the first is dropped when it becomes the first.
func (g *Gate) Inherit() {
	g.guard.Lock()
	g.grantLocked()
	g.guard.Unlock()
}

// closeLocked sets the flag waiting, so that the fast paths fail, and returns the number of held permits. From then on the number changes
// only under the guard, until storeLocked opens the fast paths again.
func (g *Gate) closeLocked() (held uint64) { return g.word.Or(waiting) / one }

func (g *Gate) storeLocked(held uint64) {
	w := held * one
	if g.waiters.Len() > 0 || g.changed {
		w |= waiting
	}
	g.word.Store(w)
}

// Resize sets the number of permits to n. If tasks hold more, none is granted until they have released the surplus.
func (g *Gate) Resize(n uint64) {
	g.guard.Lock()
	defer g.guard.Unlock()
	ledger.Resized(g, n)
	g.size, g.changed = n, true
	g.grantLocked()
}

// Close ends all waits with ErrClosed, so that g grants no more permits. It reports whether g was open.
func (g *Gate) Close(size uint64) bool {
	g.guard.Lock()
	defer g.guard.Unlock()
	g.sizeLocked(size)
	open := !g.closed
	g.changed, g.closed = true, true
	g.grantLocked()
	return open
}

// sizeLocked returns the number of permits. Before the first change, this is the argument, which it stores for grantLocked.
func (g *Gate) sizeLocked(size uint64) uint64 {
	if !g.changed {
		g.size = size
	}
	return g.size
}

// freeLocked returns how many permits are free while held are held. After a Resize, held may be larger than the number of permits.
func (g *Gate) freeLocked(held uint64) uint64 {
	return g.size - min(g.size, held)
}

// refusedLocked returns the error for a request that can never be granted, or nil.
func (g *Gate) refusedLocked(n, size uint64) error {
	if g.closed {
		return ErrClosed
	}
	if n > g.sizeLocked(size) {
		return ErrTooLarge
	}
	return nil
}

// A Request is the Source of an Acquire of N permits. Wait calls Try under the guard and, if it returns false, Enqueue in the same critical
// section. It calls Remove in the task of the waiter, if the wait was cancelled.
type Request struct {
	*Gate
	N, Size uint64
}

// Guard implements suspend.Source.
func (r Request) Guard() *suspend.Guard { return &r.guard }

// Try implements suspend.Source.
func (r Request) Try() (v struct{}, ok bool, err error) {
	if err := r.refusedLocked(r.N, r.Size); err != nil {
		return v, true, err
	}
	return v, r.takeLocked(r.N), nil
}

// Enqueue implements suspend.Source.
func (r Request) Enqueue(w suspend.Resumer[struct{}]) {
	r.waiters.Push(w, r.N)
	w.LeaveTo(&r.heir, r.Gate)
}

// Remove implements suspend.Source.
func (r Request) Remove(w suspend.Resumer[struct{}]) {
	r.waiters.Remove(w)
	r.grantLocked()
}

// Op returns an Op that performs Acquire.
func (g *Gate) Op(n, size uint64) suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&looking{Request{g, n, size}})
}

// A looking is the Source of an Acquire in a Select, which may check the gate without waiting.
type looking struct{ Request }

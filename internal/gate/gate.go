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

// Max is the number of permits of each Gate. For a smaller number, call Limit before the first use.
const Max = 1<<63 - 1

// A Gate grants permits. One call can take or release several permits. All permits of the zero Gate are free. A waiting task holds none of
// its permits. All of them are handed over to the task before it resumes. No task overtakes another.
type Gate struct {
	// The word holds the number of taken permits, in units of the constant one, and the flag waiting. The guard protects the queue. -A> is
	// an Acquire, -R> a Release, -C> a cancelled Acquire.
	//
	//	taken          -A> taken            enough are free
	//	taken          -A> taken+waiting    too few are free: the task queues
	//	taken          -R> taken
	//	taken+waiting  -A> taken+waiting    the task queues
	//	taken+waiting  -R> taken[+waiting]  the first waiters that fit are granted their permits
	//	taken+waiting  -C> taken[+waiting]  the same, because the cancelled waiter may have been the first that did not fit
	//
	// After a Resize or a Close, the flag waiting stays set, so that every operation checks the field changed under the guard.
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
	changed *change
}

// A change is the state of a Gate after the first Resize or Close.
//
// A Gate has Max permits at any time. Those that it must not grant count as taken: they are lost. If all free permits are lost, and there
// are still too many, then the Gate is owed the rest, and a Release pays. This is an example, in which M is Max. The first three
// columns are stored, and the others follow from them:
//
//	                          taken   lost   owed   permits (M-lost-owed)   held (taken-lost)   free (M-taken)
//	Limit(10), Acquire(7)     M-3     M-10   0      10                      7                   3
//	Resize(4)                 M       M-7    3      4                       7                   0                three are lost, three owed
//	Release(2)                M       M-5    1      4                       5                   0                both pay
//	Release(2)                M-1     M-4    0      4                       3                   1                one pays, one is free
//	Resize(10)                M-7     M-10   0      10                      3                   7
//
// The callers of Release count with the permits of Limit, as without a change: the seven permits are taken = M-3 to them.
//
// Invariant: owed is zero unless all permits are taken.
type change struct {
	lostAtFirst uint64 // the number of permits that Limit has removed
	lost        uint64 // the number of permits that are removed now
	owed        uint64 // the number of held permits that are removed when they are released
	closed      bool
}

// The number of taken permits is stored above the flag waiting, in units of the constant one.
const (
	waiting uint64 = 1 << iota
	one
)

// Limit removes all permits but n from a new Gate. Removed permits count as taken.
func (g *Gate) Limit(n uint64) { g.word.Store((Max - n) * one) }

// Resize sets the number of permits to n. The parameter size is the number of permits after Limit. Surplus permits that are held are
// removed when they are released.
func (g *Gate) Resize(size, n uint64) {
	g.guard.Lock()
	defer g.guard.Unlock()
	ledger.Resized(g, n)
	c := g.changeLocked(size)
	if now := Max - c.lost - c.owed; n < now {
		c.owed += now - n
	} else {
		kept := min(n-now, c.owed)
		c.owed -= kept
		found := n - now - kept
		c.lost -= found
		g.word.Add(-found * one)
	}
	g.grantLocked()
}

// Close ends all waits with ErrClosed, so that g grants no more permits. It reports whether g was open.
func (g *Gate) Close(size uint64) bool {
	g.guard.Lock()
	defer g.guard.Unlock()
	c := g.changeLocked(size)
	open := !c.closed
	c.closed = true
	g.grantLocked()
	return open
}

func (g *Gate) changeLocked(size uint64) *change {
	taken := g.word.Or(waiting) / one
	if g.changed == nil {
		g.changed = &change{lostAtFirst: Max - size, lost: Max - size}
		g.word.Store(max(taken, Max-size)*one | waiting) // a zero Semaphore has not called Limit
	}
	return g.changed
}

// refusedLocked returns the error for a request that can never be granted, or nil.
func (g *Gate) refusedLocked(n, size uint64) error {
	if c := g.changed; c != nil && c.closed {
		return ErrClosed
	}
	if n > g.sizeLocked(size) {
		return ErrTooLarge
	}
	return nil
}

// sizeLocked returns the number of permits. Before the first change, this is the argument.
func (g *Gate) sizeLocked(size uint64) uint64 {
	if c := g.changed; c != nil {
		return Max - c.lost - c.owed
	}
	return size
}

// Acquire takes n permits. The parameter size is the number of permits after Limit. Acquire suspends the caller, is cancelled and fails as
// Semaphore.Acquire does.
func (g *Gate) Acquire(ctx context.Context, n, size uint64) error {
	if !preempt.On() {
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		if n <= size {
			if ok, _ := g.tryTake(n); ok {
				return nil
			}
		}
	}
	_, err := suspend.Wait[struct{}](ctx, Request{g, n, size})
	return err
}

// TryAcquire takes n permits if they are free and no task waits, and reports whether it did. The parameter size is as for Acquire.
func (g *Gate) TryAcquire(n, size uint64) bool {
	if preempt.On() {
		return g.tryReported(n, size)
	}
	if n <= size {
		if ok, sure := g.tryTake(n); sure {
			return ok
		}
	}
	return g.tryAcquireSlow(n, size)
}

func (g *Gate) tryAcquireSlow(n, size uint64) bool {
	g.guard.Relock()
	defer g.guard.Unlock()
	ok := g.refusedLocked(n, size) == nil && g.takeLocked(n)
	g.grantLocked()
	return ok
}

// Release releases n permits if the number of taken permits lies between least and most. Permits that Limit has removed count as taken.
// Release reports whether it has released the permits.
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
	taken := g.word.Or(waiting) / one
	if c := g.changed; c != nil {
		taken = taken - c.lost + c.lostAtFirst
	}
	ok := least <= taken && taken <= most
	if ok {
		g.word.Add(-n * one)
	}
	g.grantLocked()
	return ok
}

// tryTake takes n permits if no task waits, and reports whether it did. If the result sure is false, the caller must decide under the guard.
func (g *Gate) tryTake(n uint64) (ok, sure bool) {
	for {
		w := g.word.Load()
		switch {
		case w&waiting != 0:
			return false, false
		case n > Max-w/one:
			return false, true
		case g.word.CompareAndSwap(w, w+n*one):
			return true, true
		}
	}
}

// takeLocked takes n permits if they are free and no task waits. If it returns false, the flag waiting is set, so that g changes only
// under the guard, and the caller may queue. The caller must hold g.guard.
func (g *Gate) takeLocked(n uint64) bool {
	taken := g.word.Or(waiting) / one
	if n <= Max-taken && g.waiters.Len() > 0 && g.waiters.DropEnded() { // the first waiter was cancelled, or is a Select that has chosen another case
		g.grantLocked()
		taken = g.word.Or(waiting) / one
	}
	if g.waiters.Len() > 0 || n > Max-taken {
		return false
	}
	g.storeLocked(taken + n)
	return true
}

// grantLocked resumes the first waiters with their permits, until too few are free for the next waiter. The caller must hold g.guard.
func (g *Gate) grantLocked() {
	taken := g.word.Or(waiting) / one // g.word changes only under the guard from here on
	if c := g.changed; c != nil {
		paid := min(c.owed, Max-taken)
		c.owed, c.lost, taken = c.owed-paid, c.lost+paid, taken+paid
	}
	for n := g.waiters.Head(); n != nil; n = g.waiters.Head() {
		err := g.refusedLocked(*n, Max)
		if err == nil && *n > Max-taken {
			if g.waiters.DropEnded() {
				continue
			}
			break // a waiter behind it may want less, but would starve it if it went first
		}
		if n, ok := g.waiters.ResumeHead(struct{}{}, err); ok && err == nil {
			taken += n
		}
	}
	g.storeLocked(taken)
}

// Inherit implements suspend.Inheritor. A cancelled waiter that is not the first is dropped when it becomes the first.
func (g *Gate) Inherit() {
	g.guard.Lock()
	g.grantLocked()
	g.guard.Unlock()
}

func (g *Gate) storeLocked(taken uint64) {
	w := taken * one
	if g.waiters.Len() > 0 || g.changed != nil {
		w |= waiting
	}
	g.word.Store(w)
}

// A Request is the Source of an Acquire of N permits. Size is the number of permits after Limit.
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

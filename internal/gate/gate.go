// Package gate has permits that are granted strictly in the order in which tasks asked for them. It is the mechanism of
// semaphore.Semaphore and of mutex.RWMutex, whose writer takes all permits.
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

// The errors of package semaphore.
var (
	ErrTooLarge = errors.New("semaphore: more permits than there are")
	ErrClosed   = outcome.Named("semaphore: closed", suspend.ErrClosed)
)

// Max is the number of permits of each Gate. A gate of fewer permits begins with the rest taken.
const Max = 1<<63 - 1

// A Gate grants permits, several in one call. The zero Gate has all of them free. A resumed waiter has all of its
// permits, but a waiting task has none: permits are handed over. No task overtakes another.
type Gate struct {
	// The word holds the permits that are taken, times two, and whether tasks wait; the queue, under the guard, which
	// tasks. -A> is an Acquire, -R> a Release, -C> a cancelled Acquire.
	//
	//	taken          -A> taken            enough are free
	//	taken          -A> taken+waiting    too few are free: the task queues
	//	taken          -R> taken
	//	taken+waiting  -A> taken+waiting    the task queues
	//	taken+waiting  -R> taken[+waiting]  the first that fit are granted theirs
	//	taken+waiting  -C> taken[+waiting]  and here as well: the cancelled one may have been the first that did not fit
	//
	// After a Resize or a Close, waiting stays: everything that comes looks at the change, under the guard.
	//
	// Invariant: while the guard is free and nothing is owed, the first waiter does not fit. A word that has waiting is
	// changed under the guard only. A queue with waiters implies waiting. The converse may fail: a task that found too few
	// and did not queue, being cancelled or a Select with another result, leaves waiting behind for the next to put right.
	// Debt: a release, and a waiter that leaves the queue with an error, must be followed by a round of grants.
	word    atomicx.Uint64
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, uint64] // payload: the number of permits
	changed *change
}

// A change is what Resize and Close have made of a Gate.
//
// Invariant: permits are owed only while all are taken.
type change struct {
	limit  uint64 // permits that Limit has taken for good
	lost   uint64 // permits that are taken for good now
	owed   uint64 // permits to be lost when they come back
	closed bool
}

// The taken permits are counted in units of one, above the flag.
const (
	waiting uint64 = 1 << iota
	one
)

// Limit leaves a fresh Gate n permits, and takes the rest for good.
func (g *Gate) Limit(n uint64) { g.word.Store((Max - n) * one) }

// Resize leaves n permits to a Gate with size permits after Limit. Held permits that are too many are lost when they are given back.
func (g *Gate) Resize(size, n uint64) {
	g.guard.Lock()
	defer g.guard.Unlock()
	if ledger.On() {
		ledger.Resized(g, n)
	}
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

// Close ends all waits with ErrClosed, and grants no more permits. It reports whether the Gate was open.
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
		g.changed = &change{limit: Max - size, lost: Max - size}
		g.word.Store(max(taken, Max-size)*one | waiting) // Limit has not been called for a zero Semaphore
	}
	return g.changed
}

// refusedLocked returns the error of a request that must not wait.
func (g *Gate) refusedLocked(n, size uint64) error {
	if c := g.changed; c != nil && c.closed {
		return ErrClosed
	}
	if n > g.sizeLocked(size) {
		return ErrTooLarge
	}
	return nil
}

// sizeLocked returns how many permits there are, size before the first change.
func (g *Gate) sizeLocked(size uint64) uint64 {
	if c := g.changed; c != nil {
		return Max - c.lost - c.owed
	}
	return size
}

// Acquire takes n permits of size, at once or when they are granted. It suspends, is cancelled and fails as Semaphore.Acquire.
func (g *Gate) Acquire(ctx context.Context, n, size uint64) error {
	if preempt.On() {
		return g.acquire(ctx, n, size)
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if n <= size {
		if ok, _ := g.take(n); ok {
			return nil
		}
	}
	_, err := suspend.Wait[struct{}](ctx, Request{g, n, size}, false)
	return err
}

// acquire is Acquire where a scheduler wants a choice, or holders are recorded.
func (g *Gate) acquire(ctx context.Context, n, size uint64) error {
	suspend.Preemptible()
	err := suspend.Err(ctx)
	if err != nil {
		return err
	}
	ok := false
	if n <= size {
		ok, _ = g.take(n)
	}
	if !ok {
		_, err = suspend.Wait[struct{}](ctx, Request{g, n, size}, false)
	}
	if err == nil {
		Request{g, n, size}.Took(0)
	}
	return err
}

// TryAcquire takes n permits of size if they are free and no task waits, and reports whether it did.
func (g *Gate) TryAcquire(n, size uint64) bool {
	suspend.Point()
	preempt.Looks(preempt.Gates)
	ok, sure := false, false
	if n <= size {
		ok, sure = g.take(n)
	}
	if !sure {
		ok = g.tryAcquireSlow(n, size)
	}
	if ok {
		Request{g, n, size}.Took(0)
	}
	return ok
}

func (g *Gate) tryAcquireSlow(n, size uint64) bool {
	g.guard.Relock()
	defer g.guard.Unlock()
	ok := g.refusedLocked(n, size) == nil && g.takeLocked(n)
	g.grantLocked()
	return ok
}

// Release gives n permits back if at least least and at most most are taken, by holders and by Limit, and reports
// whether it did.
func (g *Gate) Release(n, least, most uint64) bool {
	if preempt.On() {
		g.releases(n)
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

func (g *Gate) releases(n uint64) {
	preempt.Releases(preempt.Gates)
	if ledger.On() {
		ledger.Gave(g, n)
	}
}

func (g *Gate) releaseSlow(n, least, most uint64) bool {
	g.guard.Relock()
	defer g.guard.Unlock()
	taken := g.word.Or(waiting) / one
	if c := g.changed; c != nil {
		taken = taken - c.lost + c.limit
	}
	ok := least <= taken && taken <= most
	if ok {
		g.word.Add(-n * one)
	}
	g.grantLocked()
	return ok
}

// take takes the permits if no task waits, and reports whether it did. If it is not sure, the caller must take the guard to decide.
func (g *Gate) take(n uint64) (ok, sure bool) {
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

// takeLocked is take for a task that may queue: if it reports false, waiting is set, and only the guard changes anything.
func (g *Gate) takeLocked(n uint64) bool {
	taken := g.word.Or(waiting) / one
	if g.waiters.Len() > 0 || n > Max-taken {
		return false
	}
	g.storeLocked(taken + n)
	return true
}

// grantLocked grants the first waiters their permits, as far as there are enough.
func (g *Gate) grantLocked() {
	taken := g.word.Or(waiting) / one // only the guard's holder changes it after this
	if c := g.changed; c != nil {
		paid := min(c.owed, Max-taken)
		c.owed, c.lost, taken = c.owed-paid, c.lost+paid, taken+paid
	}
	for n := g.waiters.Head(); n != nil; n = g.waiters.Head() {
		err := g.refusedLocked(*n, Max)
		if err == nil && *n > Max-taken {
			break
		}
		if n, ok := g.waiters.ResumeHead(struct{}{}, err); ok && err == nil {
			taken += n
		}
	}
	g.storeLocked(taken)
}

func (g *Gate) storeLocked(taken uint64) {
	w := taken * one
	if g.waiters.Len() > 0 || g.changed != nil {
		w |= waiting
	}
	g.word.Store(w)
}

// A Request is an Acquire of N permits of Size as a Source.
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
func (r Request) Enqueue(w suspend.Resumer[struct{}]) { r.waiters.Push(w, r.N) }

// Remove implements suspend.Source.
func (r Request) Remove(w suspend.Resumer[struct{}]) {
	r.waiters.Remove(w)
	r.grantLocked()
}

// Wants implements ledger.Wanter.
func (r Request) Wants() ledger.Permits { return ledger.Permits(r.N) }

// Took implements ledger.Holder: the caller has the permits.
func (r Request) Took(then ledger.Then) {
	if ledger.On() {
		r.guard.Relock()
		size := r.sizeLocked(r.Size)
		r.guard.Unlock()
		ledger.Took(r.Gate, r.N, size, then)
	}
}

// Op is Acquire as an Op, whose case of a Select need not wait for it.
func (g *Gate) Op(n, size uint64) suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&looking{Request{g, n, size}})
}

type looking struct{ Request }

// Try implements suspend.Source.
func (l *looking) Try() (v struct{}, ok bool, err error) {
	preempt.Looks(preempt.Gates)
	return l.Request.Try()
}

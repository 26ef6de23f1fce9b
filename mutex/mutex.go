// Package mutex provides a mutual exclusion lock and a read-write lock that tasks of any scheduler can share, and whose waits a context can
// cancel. They take the place of those in package sync by a change of the type.
//
// A wait for a sync.Mutex cannot be cancelled, and blocks the scheduler's thread. The usual workaround is a channel with a capacity of one:
//
//	select {
//	case lock <- struct{}{}:
//		defer func() { <-lock }()
//	case <-ctx.Done():
//		return ctx.Err()
//	}
//
// Mutex.LockContext takes the context:
//
//	if err := mu.LockContext(ctx); err != nil {
//		return err
//	}
//	defer mu.Unlock()
//
// A cancelled LockContext does not acquire the lock, and loses no wake-up. Where no wait is to be cancelled, use Lock, which always
// acquires: a Mutex and an RWMutex are sync.Lockers.
//
// Use sync.Mutex for short critical sections in which no task suspends. Use an mvar.MVar for a value whose modification may suspend.
package mutex

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A Mutex is a lock that at most one task holds. The zero Mutex is unlocked. A Mutex must not be copied. One task may lock a Mutex, and
// another task may unlock it.
//
// Waiters acquire the lock in the order of their calls, with one exception. Unlock only nudges the first waiter: it wakes the waiter to
// compete for the lock, so a running task may lock the Mutex before that waiter runs. A hand-over would leave the lock idle until the
// waiter runs. After a few unsuccessful nudges, the next Unlock hands the lock over to the waiter, so that no waiter starves.
//
// At any time, at most one waiter is nudged and has not yet competed. If the scheduler of that waiter is busy for a long time, the waiters
// behind it keep waiting although the Mutex is unlocked. New callers of Lock can acquire it. Only a timer for each Unlock could prevent
// this. Where this matters, use an RWMutex or a semaphore with one permit, because both hand over in strict order.
type Mutex struct {
	// The field word holds the state of the Mutex, and the guard protects the queue. -L> is a Lock, -U> an Unlock, -N> the nudged waiter.
	// Without the guard, only the flag held changes.
	//
	//	free           -L> held
	//	held           -L> held+waited        the waiter queues, unless it finds the lock free by then
	//	held           -U> free
	//	held+waited    -U> waited+nudged      the head is resumed to compete, and leaves the queue
	//	held+waited    -U> held[+waited]      the head is resumed as the owner, and leaves the queue
	//	waited+nudged  -L> held+waited+nudged barging
	//	held+waited+nudged -U> waited+nudged
	//	waited+nudged  -N> held[+waited]
	//	held+waited+nudged -N> held+waited    the waiter queues again, at the head
	//
	// Invariant: the flag waited is set while a waiter is queued or nudged. (The converse may fail, because a cancelled waiter leaves the
	// flag set, and took sets it. The next Unlock clears it.)
	// Debt: a task that unlocks a Mutex with waiters must nudge the first waiter, unless another waiter is nudged. A nudged waiter that is
	// cancelled must nudge the next waiter if the Mutex is unlocked.

	word    atomicx.Uint32
	guard   suspend.Guard
	waiters suspend.Queue[grant, int] // the payload is the number of nudges that the waiter has received
}

const (
	held uint32 = 1 << iota
	waited
	nudged
)

// A grant says whether a resumed waiter owns the lock or competes for it.
type grant bool

const (
	owner   grant = true
	compete grant = false
)

// patience is the number of nudges after which Unlock hands the lock over to a waiter.
const patience = 4

// Lock locks m. It suspends the caller while another task holds m. Nothing cancels the wait.
//
// The n'th Unlock synchronizes before the return of the (n+1)'th successful Lock, TryLock or LockContext.
func (m *Mutex) Lock() {
	switch {
	case preempt.On():
		must(m.lockReported(context.Background()))
	case !m.word.CompareAndSwap(0, held) && !m.tryTake():
		must(m.lockSlow(context.Background()))
	}
}

// must panics if a lock without an end of its context has not been acquired: the caller would go on without it.
func must(err error) {
	if err != nil {
		panic("mutex: Lock: " + err.Error())
	}
}

// LockContext locks m. It suspends the caller while another task holds m. If ctx is done before the call or during the wait, LockContext
// returns the cancellation error, and the caller does not hold m. If a hand-over races with the cancellation, either may win.
func (m *Mutex) LockContext(ctx context.Context) error {
	if preempt.On() {
		return m.lockReported(ctx)
	}
	if ctx.Err() != nil { // repeats suspend.Err, because the compiler does not inline it
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		return context.Canceled // ctx breaks its contract: its Err has become nil again
	}
	if m.word.CompareAndSwap(0, held) || m.tryTake() { // m.tryTake() may overtake waiters
		return nil
	}
	return m.lockSlow(ctx)
}

// TryLock locks m if m is unlocked, even if other tasks wait for m, and reports whether it did. It never suspends. TryLock may also fail
// although no task holds m, if a cancelled Lock is handing m over to a LockOp that is also cancelled.
func (m *Mutex) TryLock() bool {
	if preempt.On() {
		return m.tryLockReported()
	}
	return m.tryTake()
}

func (m *Mutex) tryTake() bool {
	for {
		w := m.word.Load()
		if w&held != 0 {
			return false
		}
		if m.word.CompareAndSwap(w, w|held) {
			return true
		}
	}
}

// Unlock unlocks m. It never suspends, and panics if m is not locked.
func (m *Mutex) Unlock() {
	if !m.word.CompareAndSwap(held, 0) {
		m.unlockSlow()
	}
}

// A locker is the state of one call of lockSlow. It keeps the closures of that call small.
type locker struct {
	m      *Mutex
	nudges int
	me     suspend.Resumer[grant] // is zero if the caller has not queued since its last nudge
	locked bool
}

func (m *Mutex) lockSlow(ctx context.Context) (err error) {
	ctx = lazily.Allow(ctx)
	w := &locker{m: m}
	defer w.leaveQueue()
	for ; ; w.nudges++ {
		w.me = suspend.Resumer[grant]{}
		var g grant
		g, err = suspend.Suspend(ctx, func(r suspend.Resumer[grant]) (grant, bool) {
			w.m.guard.Lock()
			locked := w.m.lockLocked(w.nudges > 0)
			if !locked {
				w.me = r
				if w.nudges > 0 {
					w.m.waiters.PushFront(r, w.nudges)
				} else {
					w.m.waiters.Push(r, 0)
				}
			}
			w.m.guard.Unlock()
			return owner, locked
		})
		if err != nil {
			return err
		}
		if g == owner {
			w.locked = true
			w.m.took(0)
			return nil
		}
	}
}

// leaveQueue removes the caller from the queue if its Lock has failed. It runs even if a method of the context panics.
func (w *locker) leaveQueue() {
	if w.locked {
		return
	}
	m := w.m
	m.guard.Lock()
	m.waiters.Remove(w.me)
	if w.nudges > 0 && w.me == (suspend.Resumer[grant]{}) {
		m.giveUpLocked()
	}
	m.guard.Unlock()
}

// lockLocked locks m if m is unlocked, and reports whether it did. If m is locked, lockLocked sets the flag waited, so that an Unlock
// serves the queue in which the caller then waits. The parameter mine reports whether the caller is the nudged waiter. The caller must hold
// m.guard.
func (m *Mutex) lockLocked(mine bool) bool {
	for {
		w := m.word.Load()
		now := w | held
		if mine {
			now &^= nudged
		}
		switch {
		case w&held != 0:
			now |= waited
		case mine && m.waiters.Len() == 0:
			now &^= waited
		}
		if m.word.CompareAndSwap(w, now) { // fails if m has been locked or unlocked since the Load
			return w&held == 0
		}
	}
}

// giveUpLocked passes the caller's nudge on to the next waiter. It locks m only to hand m over. The caller must hold m.guard.
func (m *Mutex) giveUpLocked() {
	for {
		w := m.word.Load()
		switch {
		case w&held != 0:
			if m.word.CompareAndSwap(w, held|waited) { // the holder's Unlock serves the queue
				return
			}
		case m.waiters.Len() == 0:
			if m.word.CompareAndSwap(w, 0) { // nobody waits, so nobody needs the nudge
				return
			}
		case *m.waiters.Head() < patience:
			if _, ok := m.waiters.ResumeHead(compete, nil); ok { // the resumed waiter has the nudge now
				return
			}
		case m.word.CompareAndSwap(w, held|waited): // locks m to hand it over
			m.passOnLocked()
			return
		}
	}
}

func (m *Mutex) unlockSlow() {
	m.gives()
	for {
		w := m.word.Load()
		switch {
		case w&held == 0:
			panic("mutex: Unlock of an unlocked Mutex")
		case w&waited == 0 || w&nudged != 0:
			if m.word.CompareAndSwap(w, w&^held) {
				return
			}
		default:
			m.guard.Relock()
			if m.word.Load() == held|waited {
				m.passOnLocked()
				m.guard.Unlock()
				return
			}
			m.guard.Unlock()
		}
	}
}

// passOnLocked unlocks m, and nudges the first waiter or hands m over to it. The caller must hold m and m.guard, and no waiter is nudged,
// so only the caller changes m.word.
func (m *Mutex) passOnLocked() {
	for m.waiters.Len() > 0 {
		g := grant(*m.waiters.Head() >= patience)
		if _, ok := m.waiters.ResumeHead(g, nil); !ok {
			continue
		}
		switch {
		case g == compete: // the waiter cannot compete before the guard is unlocked
			m.word.Store(waited | nudged)
		case m.waiters.Len() == 0:
			m.word.Store(held)
		}
		return
	}
	m.word.Store(0)
}

// LockOp returns an Op that performs LockContext. A waiter in a Select or a Then is handed the lock and is never nudged, because it may also wait
// for other operations.
func (m *Mutex) LockOp() suspend.Op[struct{}] {
	return suspend.Map(suspend.OpOf[grant]((*lockSource)(m)), func(_ grant, err error) (struct{}, error) { return struct{}{}, err })
}

type lockSource Mutex

func (s *lockSource) Guard() *suspend.Guard            { return &s.guard }
func (s *lockSource) Enqueue(r suspend.Resumer[grant]) { s.waiters.Push(r, patience) }

// Try implements suspend.Source. If it reports false, the flag waited is set, so that the next Unlock takes the guard.
func (s *lockSource) Try() (g grant, ok bool, err error) {
	return owner, (*Mutex)(s).lockLocked(false), nil
}

func (s *lockSource) Remove(r suspend.Resumer[grant]) { s.waiters.Remove(r) }

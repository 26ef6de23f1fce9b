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
	//	free               -L> held
	//	held               -L> held+waited          the waiter queues, unless it finds the lock free by then
	//	held[+waited]      -U> free or waited
	//	waited             -U> waited+nudged        the head is resumed to compete, and leaves the queue
	//	waited[+nudged]    -L> held+waited[+nudged] barging: the next Unlock serves the queue
	//	waited+nudged      -N> held[+waited]
	//	held+waited+nudged -N> held+waited[+due]    the waiter queues again, at the head
	//	held+waited        -U> held+waited+due      the head must be handed the lock, but barging has come first
	//	held+waited+due    -U> waited+due           the Unlock keeps the lock
	//	waited+due         -U> held+waited+due      the head is resumed as the owner, and leaves the queue
	//
	// Invariant: m is unlocked if neither held nor due is set. If only due is set, m belongs to an Unlock in unlockSlow.
	// Invariant: the flag waited is set while a waiter is queued or nudged. (The converse may fail, because a cancelled waiter leaves the
	// flags waited and due set. The next Unlock clears them.)
	// Debt: a task that unlocks a Mutex with waiters must nudge the first waiter, unless another waiter is nudged or another task has
	// locked the Mutex. A nudged waiter that is cancelled has the same debt.

	word    atomicx.Uint32
	guard   suspend.Guard
	waiters suspend.Queue[grant, int] // the payload is the number of nudges that the waiter has received
}

const (
	waited uint32 = 1 << iota
	nudged
	due
	held uint32 = 1 << 31 // is the highest bit, so that an addition inverts it and leaves the flags as they are
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

// TryLock locks m if m is unlocked, even if other tasks wait for m, and reports whether it did. It never suspends.
func (m *Mutex) TryLock() bool {
	if preempt.On() {
		return m.tryLockReported()
	}
	return m.tryTake() || m.tryTakeSlow()
}

// tryTakeSlow waits until no hand-over is under way, and then is tryTake. Otherwise a TryLock might fail although no task holds m, because m is
// being handed over to a LockOp that is cancelled.
func (m *Mutex) tryTakeSlow() bool {
	if m.word.Load()&(held|due) != due {
		return false
	}
	m.guard.Relock()
	defer m.guard.Unlock()
	return m.tryTake()
}

func (m *Mutex) tryTake() bool {
	for {
		w := m.word.Load()
		if w&(held|due) != 0 {
			return false
		}
		if m.word.CompareAndSwap(w, w|held) {
			return true
		}
	}
}

// Unlock unlocks m. It never suspends, and panics if m is not locked.
func (m *Mutex) Unlock() {
	if w := m.word.Add(held); w != 0 {
		m.unlockSlow(w)
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
			locked := w.m.lockLocked(w.nudges)
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
		m.word.And(^nudged)
		m.nudgeLocked()
	}
	m.guard.Unlock()
}

// lockLocked locks m if m is unlocked, and reports whether it did. If m is locked, lockLocked sets the flag waited, so that an Unlock
// serves the queue in which the caller then waits. If the parameter nudges is not 0, the caller is the nudged waiter. The caller must hold
// m.guard.
func (m *Mutex) lockLocked(nudges int) bool {
	for {
		w := m.word.Load()
		now := w
		if nudges > 0 {
			now &^= nudged
		}
		free := w&(held|due) == 0
		switch {
		case !free && nudges >= patience:
			now |= waited | due
		case !free:
			now |= waited
		case nudges > 0 && m.waiters.Len() == 0:
			now = held
		default:
			now |= held
		}
		if m.word.CompareAndSwap(w, now) { // fails if m has been locked or unlocked since the Load
			return free
		}
	}
}

// unlockSlow is the slow path of Unlock. The parameter w is the word after the addition.
func (m *Mutex) unlockSlow(w uint32) {
	switch {
	case w&held != 0: // m was unlocked, and the addition has locked it
		if w&due == 0 {
			m.Unlock()
		} // otherwise another Unlock is in passOnLocked, which needs or clears the flag held
		panic("mutex: Unlock of an unlocked Mutex")
	case w&due != 0: // m is still locked
		m.gives()
		m.guard.Relock()
		m.passOnLocked()
		m.guard.Unlock()
	case w&nudged == 0:
		m.guard.Relock()
		m.nudgeLocked()
		m.guard.Unlock()
	}
}

// passOnLocked hands m over to the first waiter, or unlocks m and nudges the first waiter. The caller must hold m.guard, and m by the flag
// due. The flag stays set after a hand-over, so that an Unlock of the new owner waits for the guard.
func (m *Mutex) passOnLocked() {
	for m.word.Load()&nudged == 0 && m.waiters.Len() > 0 && *m.waiters.Head() >= patience {
		m.word.Or(held)
		if _, ok := m.waiters.ResumeHead(owner, nil); ok {
			return
		}
	}
	m.word.And(^(held | due))
	m.nudgeLocked()
}

// nudgeLocked nudges the first waiter, if m is unlocked and no waiter is nudged. It locks m only to hand m over. The caller must hold
// m.guard.
func (m *Mutex) nudgeLocked() {
	for {
		w := m.word.Load()
		switch {
		case w&nudged != 0:
			return
		case m.waiters.Len() == 0:
			if m.word.CompareAndSwap(w, w&^waited) {
				return
			}
		case *m.waiters.Head() >= patience:
			if m.word.CompareAndSwap(w, w|due) {
				if w&(held|due) == 0 {
					m.passOnLocked()
				}
				return // otherwise the Unlock of the holder hands m over
			}
		case w&(held|due) != 0: // the Unlock of the holder nudges the waiter
			return
		case m.word.CompareAndSwap(w, w|nudged): // the waiter cannot compete before the guard is unlocked
			if _, ok := m.waiters.ResumeHead(compete, nil); ok {
				return
			}
			m.word.And(^nudged)
		}
	}
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
	return owner, (*Mutex)(s).lockLocked(0), nil
}

func (s *lockSource) Remove(r suspend.Resumer[grant]) { s.waiters.Remove(r) }

// Package mutex provides a lock and a read-write lock that can be waited for with a context, from any scheduler.
//
// A sync.Mutex cannot give up, and it blocks the thread of its scheduler. The usual cure is a channel of one:
//
//	select {
//	case lock <- struct{}{}:
//		defer func() { <-lock }()
//	case <-ctx.Done():
//		return ctx.Err()
//	}
//
// A Mutex takes the context:
//
//	if err := mu.Lock(ctx); err != nil {
//		return err
//	}
//	defer mu.Unlock()
//
// A cancelled Lock does not hold the lock, and no wake-up is lost with it. Without a context use [Mutex.Locker], whose Lock returns
// nothing: go vet does not report an ignored error of Lock.
//
// Use sync.Mutex for short sections in which nothing suspends. Use an mvar.MVar for a value that tasks change in turn.
package mutex

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A Mutex is held by at most one task. The zero Mutex is free and ready to use; it must not be copied. One task may lock it and
// another unlock it.
//
// Waiters are served in the order in which they arrived, with one exception. A task that runs may take a Mutex that has just
// been unlocked, before the first waiter. An Unlock only nudges the first waiter, which then competes. A hand-over would leave the lock
// idle until that task runs. After a few nudges without success the next Unlock hands the lock over, so no waiter starves.
//
// At most one nudge is out. If the scheduler of the nudged waiter computes for long, the waiters behind it must wait, although m
// is free. New callers of Lock take it. Only a timer for each Unlock could prevent this. Where it matters, use an
// RWMutex or a semaphore of one permit: they hand over, in strict order.
type Mutex struct {
	// The word is the state of the Mutex. The queue holds the waiters, under the guard. -L> is a Lock, -U> an Unlock, -N> the
	// nudged waiter. Only held changes without the guard.
	//
	//	free           -L> held
	//	held           -L> held+waited        the waiter queues, unless it finds the lock free by then
	//	held           -U> free
	//	held+waited    -U> waited+nudged      the head is resumed to compete, and leaves the queue
	//	held+waited    -U> held[+waited]      the head is resumed as the owner, and leaves the queue
	//	waited+nudged  -L> held+waited+nudged barging
	//	held+waited+nudged -U> waited+nudged
	//	waited+nudged  -N> held[+waited]
	//	held+waited+nudged -N> held+waited    it queues again, at the head
	//
	// Invariant: queued or nudged implies waited. (The converse may fail: a waiter that gives up leaves waited behind, and the next
	// Unlock puts it right.)
	// Debt: a task that frees a waited Mutex owes a nudge, unless one is out. A nudged waiter that gives up passes it on, if the
	// Mutex is free.

	word    atomicx.Uint32
	guard   suspend.Guard
	waiters suspend.Queue[grant, int] // payload: the number of nudges received
}

const (
	held uint32 = 1 << iota
	waited
	nudged
)

// owned is the word of a Mutex that is taken. While a scheduler wants a choice at each operation, or holders are recorded, it has waited, so
// that the Unlock comes to unlockSlow, which may be a point. A look at the scheduler in Unlock itself would cost each of them.
func owned() uint32 {
	if preempt.Watched() || ledger.On() {
		return held | waited
	}
	return held
}

// A grant says whether a resumed waiter owns the lock or competes for it.
type grant bool

const (
	owner   grant = true
	compete grant = false
)

// patience is the number of nudges before a waiter is handed the lock.
const patience = 4

// Lock locks m. It suspends the caller while another task holds it. If ctx is done first, or already, Lock returns the cancellation
// error and the caller does not hold m. If a hand-over and the cancellation meet, either may win.
//
// The n'th Unlock synchronizes before the return of the n+1'th successful Lock.
func (m *Mutex) Lock(ctx context.Context) error {
	locked := held
	if preempt.On() {
		suspend.Preemptible()
		locked = owned()
	}
	if ctx.Err() != nil { // repeats Err, which the compiler does not inline
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		return context.Canceled // it breaks its contract, and the lock is not held
	}
	if m.word.CompareAndSwap(0, locked) || m.take() { // the latter barges
		if locked != held {
			m.took(0)
		}
		return nil
	}
	return m.lockSlow(ctx)
}

// TryLock locks m if it is free, also if others wait for it, and reports whether it did. It never suspends. There is a moment in which
// it may fail without a holder: a Lock that gives up is handing m over to an Op, which is cancelled, too.
func (m *Mutex) TryLock() bool {
	suspend.Point()
	preempt.Looks(preempt.Mutexes)
	ok := m.take()
	if ok {
		m.took(0)
	}
	return ok
}

// took records the holder, if any are.
func (m *Mutex) took(then ledger.Then) {
	if ledger.On() {
		m.word.Or(waited) // so that the Unlock is recorded, although the ledger may have been off a moment ago
		ledger.Took(m, 1, 1, then)
	}
}

func (m *Mutex) take() bool {
	for {
		w := m.word.Load()
		if w&held != 0 {
			return false
		}
		if m.word.CompareAndSwap(w, w|owned()) {
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

// With calls f with m locked, and unlocks m when f has returned, panicked or ended its goroutine. It suspends the caller as Lock
// does. Nothing cancels it, so it returns no error.
func (m *Mutex) With(f func()) {
	_ = m.Lock(context.Background())
	defer m.Unlock()
	f()
}

// Locker returns a sync.Locker whose Lock waits without a context.
func (m *Mutex) Locker() sync.Locker { return (*locker)(m) }

type locker Mutex

func (l *locker) Lock()   { _ = (*Mutex)(l).Lock(context.Background()) }
func (l *locker) Unlock() { (*Mutex)(l).Unlock() }

func (m *Mutex) lockSlow(ctx context.Context) error {
	ctx = suspend.AllowLazy(ctx)
	nudges, me, locked := 0, suspend.Resumer[grant]{}, false
	defer func() { // runs even if ctx panics
		if !locked {
			m.leave(me, nudges)
		}
	}()
	for ; ; nudges++ {
		me = suspend.Resumer[grant]{}
		g, err := suspend.Suspend(ctx, func(r suspend.Resumer[grant]) (grant, bool) {
			m.guard.Lock()
			defer m.guard.Unlock()
			switch {
			case m.lockLocked(nudges > 0):
				return owner, true
			case nudges > 0:
				m.waiters.PushFront(r, nudges)
			default:
				m.waiters.Push(r, nudges)
			}
			me = r
			return compete, false
		})
		if err != nil {
			return err
		}
		if g == owner {
			locked = true
			m.took(0)
			return nil
		}
	}
}

// leave removes a waiter that does not get the lock. me is zero if it was not queued again after its last nudge.
func (m *Mutex) leave(me suspend.Resumer[grant], nudges int) {
	m.guard.Lock()
	m.waiters.Remove(me)
	if nudges > 0 && me == (suspend.Resumer[grant]{}) {
		m.giveUpLocked()
	}
	m.guard.Unlock()
}

// lockLocked locks m if it is free. If not, the caller queues: from here on an Unlock looks at the queue. mine says that the
// caller is the nudged waiter.
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
			fallthrough
		default:
			now |= owned()
		}
		if m.word.CompareAndSwap(w, now) { // otherwise held has changed
			return w&held == 0
		}
	}
}

// giveUpLocked passes the nudge of the caller on to the next waiter. It takes the lock only to hand it over.
func (m *Mutex) giveUpLocked() {
	for {
		w := m.word.Load()
		switch {
		case w&held != 0:
			if m.word.CompareAndSwap(w, held|waited) { // the Unlock will look at the queue
				return
			}
		case m.waiters.Len() == 0:
			if m.word.CompareAndSwap(w, 0) {
				return
			}
		case *m.waiters.Head() < patience:
			if _, ok := m.waiters.ResumeHead(compete, nil); ok {
				return
			}
		case m.word.CompareAndSwap(w, held|waited):
			m.passOnLocked()
			return
		}
	}
}

func (m *Mutex) unlockSlow() {
	preempt.Releases(preempt.Mutexes)
	if ledger.On() {
		ledger.Gave(m, 1)
	}
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

// passOnLocked is an Unlock with waiters. The caller holds the Mutex and no waiter is nudged, so only the caller changes the
// word.
func (m *Mutex) passOnLocked() {
	for m.waiters.Len() > 0 {
		g := grant(*m.waiters.Head() >= patience)
		if _, ok := m.waiters.ResumeHead(g, nil); !ok {
			continue
		}
		switch {
		case g == compete: // the waiter waits for the guard
			m.word.Store(waited | nudged)
		case m.waiters.Len() == 0:
			m.word.Store(owned())
		}
		return
	}
	m.word.Store(0)
}

// LockOp is Lock as an Op. A waiter in a Select or a Then is handed the lock and never nudged, since it may also wait for other
// operations.
func (m *Mutex) LockOp() suspend.Op[struct{}] {
	return suspend.Map(suspend.OpOf[grant]((*lockSource)(m)), func(_ grant, err error) (struct{}, error) { return struct{}{}, err })
}

type lockSource Mutex

func (s *lockSource) Guard() *suspend.Guard            { return &s.guard }
func (s *lockSource) Enqueue(r suspend.Resumer[grant]) { s.waiters.Push(r, patience) }

// If Try reports false, an Unlock has to take the guard.
func (s *lockSource) Try() (g grant, ok bool, err error) {
	preempt.Looks(preempt.Mutexes)
	return owner, (*Mutex)(s).lockLocked(false), nil
}

// Took implements ledger.Holder.
func (s *lockSource) Took(then ledger.Then) { (*Mutex)(s).took(then) }

func (s *lockSource) Remove(r suspend.Resumer[grant]) { s.waiters.Remove(r) }

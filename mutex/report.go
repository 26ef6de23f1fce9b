package mutex

import (
	"context"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// This file reports the operations of a Mutex to a test scheduler, which may switch tasks in each of them, and to the ledger, which records
// the holder. It is not needed to understand the lock.

// lockReported is LockContext while preempt.On returns true.
func (m *Mutex) lockReported(ctx context.Context) error {
	suspend.Preemptible()
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if !m.tryTake() {
		return m.lockSlow(ctx) // calls took
	}
	m.took(0)
	return nil
}

// tryLockReported is TryLock while preempt.On returns true.
func (m *Mutex) tryLockReported() bool {
	suspend.Point()
	preempt.Looks(preempt.Mutexes)
	ok := m.tryTake() || m.tryTakeSlow()
	if ok {
		m.took(0)
	}
	return ok
}

// took reports that the caller, or a continuation, has locked m. It sets the flag due, so that Unlock calls unlockSlow, which reports the
// release before m is unlocked. A check in Unlock itself would slow down every Unlock. Under the guard, a task that is still handing m over
// cannot clear the flag.
func (m *Mutex) took(then ledger.Then) {
	if preempt.Watched() || ledger.On() {
		m.guard.Relock()
		m.word.Or(due)
		m.guard.Unlock()
		ledger.TookN(m, 1, 1, then)
	}
}

// gives reports that the caller is about to unlock m.
func (m *Mutex) gives() {
	preempt.Releases(preempt.Mutexes)
	ledger.Gave(m)
}

// LooksAt implements preempt.Looker.
func (s *lockSource) LooksAt() preempt.Kinds { return preempt.Mutexes }

// Took implements ledger.Holder.
func (s *lockSource) Took(then ledger.Then) { (*Mutex)(s).took(then) }

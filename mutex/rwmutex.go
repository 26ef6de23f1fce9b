package mutex

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/gate"
	"github.com/braidgo/braid/suspend"
)

// An RWMutex is a lock that either one writer or any number of readers hold. The zero RWMutex is unlocked. An RWMutex must not be copied.
// One task may lock an RWMutex, and another task may unlock it. A task that holds an RWMutex must not lock it again, not even for reading.
// Otherwise the task and a writer that has called Lock in between would wait for each other.
//
// An RWMutex is handed over strictly in the order of the calls, so neither readers nor writers starve. A reader that calls RLock while a
// writer waits queues behind the writer. An RWMutex that becomes free is handed to the first waiter. If that waiter is a reader, all
// readers before the next writer in the queue get the lock with it.
type RWMutex struct {
	gate gate.Gate
}

// A reader takes one permit of the gate, and a writer takes all of them.
const (
	reader = 1
	writer = gate.Max
)

// Lock locks m for writing. It suspends the caller while another task holds m, or waits for m ahead of the caller. Nothing cancels the wait.
//
// The n'th Unlock, and all RUnlocks before the (n+1)'th successful Lock, synchronize before the return of that Lock. The same holds for
// LockContext and TryLock.
func (m *RWMutex) Lock() { must(m.LockContext(context.Background())) }

// LockContext locks m for writing, as Lock does. If ctx is done before the call or during the wait, LockContext returns the cancellation
// error, and the caller does not hold m. Readers that waited only for this writer then get the lock immediately. If the hand-over races with
// the cancellation, either may win.
func (m *RWMutex) LockContext(ctx context.Context) error { return m.gate.Acquire(ctx, writer, writer) }

// RLock locks m for reading. It suspends the caller while a writer holds m, or another task waits for m ahead of the caller. Nothing cancels
// the wait.
//
// An Unlock synchronizes before the return of every later successful RLock, RLockContext or TryRLock.
func (m *RWMutex) RLock() { must(m.RLockContext(context.Background())) }

// RLockContext locks m for reading, as RLock does. If ctx is done before the call or during the wait, RLockContext returns the cancellation
// error, and the caller does not hold m. If the hand-over races with the cancellation, either may win.
func (m *RWMutex) RLockContext(ctx context.Context) error { return m.gate.Acquire(ctx, reader, writer) }

// LockOp returns an Op that performs LockContext.
func (m *RWMutex) LockOp() suspend.Op[struct{}] {
	return m.gate.Op(writer, writer)
}

// RLockOp returns an Op that performs RLockContext. In a Select that also has the LockOp of the same RWMutex, put the RLockOp first, because
// otherwise it queues behind the LockOp.
func (m *RWMutex) RLockOp() suspend.Op[struct{}] {
	return m.gate.Op(reader, writer)
}

// TryLock locks m for writing if no task holds m or waits for m, and reports whether it did. It never suspends.
func (m *RWMutex) TryLock() bool { return m.gate.TryAcquire(writer, writer) }

// TryRLock locks m for reading if no writer holds m and no task waits for m, and reports whether it did. It never suspends.
func (m *RWMutex) TryRLock() bool { return m.gate.TryAcquire(reader, writer) }

// Unlock unlocks m for writing, and hands m over to the first waiters. It never suspends. If m is not locked for writing, Unlock panics and
// changes nothing.
func (m *RWMutex) Unlock() {
	if !m.gate.Release(writer, writer, writer) {
		panic("mutex: Unlock of an unlocked RWMutex")
	}
}

// RUnlock undoes one RLock. The last reader's RUnlock hands m over to the first waiting writer. RUnlock never suspends. If m is not locked
// for reading, RUnlock panics and changes nothing.
func (m *RWMutex) RUnlock() {
	if !m.gate.Release(reader, reader, writer-1) {
		panic("mutex: RUnlock of an unlocked RWMutex")
	}
}

// Downgrade turns the caller's write lock into a read lock without unlocking m in between. The readers at the head of the queue get the
// lock, too. Downgrade never suspends. If m is not locked for writing, Downgrade panics and changes nothing.
func (m *RWMutex) Downgrade() {
	if !m.gate.Release(writer-reader, writer, writer) {
		panic("mutex: Downgrade of an unlocked RWMutex")
	}
}

// RLocker returns a sync.Locker whose Lock is m.RLock and whose Unlock is m.RUnlock.
func (m *RWMutex) RLocker() sync.Locker { return (*rLocker)(m) }

type rLocker RWMutex

func (l *rLocker) Lock()   { (*RWMutex)(l).RLock() }
func (l *rLocker) Unlock() { (*RWMutex)(l).RUnlock() }

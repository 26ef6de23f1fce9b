package mutex

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/gate"
	"github.com/braidgo/braid/suspend"
)

// An RWMutex is held by one writer, or by any number of readers. The zero RWMutex is free and ready to use; it must not be copied. One
// task may lock it and another unlock it. A task that holds it must not lock it again, not even as a reader: a writer may wait
// in between.
//
// It is handed over strictly in the order of the calls, so neither side starves. A reader that comes while a writer waits queues
// behind it. When the lock is free, the first waiter gets it. If it is a reader, the readers right behind it get it, too, up to the
// next writer.
type RWMutex struct {
	gate gate.Gate
}

// A reader takes one permit of the gate, a writer all of them.
const (
	reader = 1
	writer = gate.Max
)

// Lock locks m for writing. It suspends the caller while another task holds m or has been waiting for longer. If ctx is done first, or
// already, Lock returns the cancellation error and the caller does not hold m. Readers that waited only because of it are let in
// immediately. If the hand-over and the cancellation meet, either may win.
//
// The n'th Unlock, and all RUnlocks before it, synchronize before the return of the n+1'th successful Lock.
func (m *RWMutex) Lock(ctx context.Context) error { return m.gate.Acquire(ctx, writer, writer) }

// RLock locks m for reading. It suspends the caller while a writer holds m, or another task has been waiting for longer. If ctx is done
// first, or already, RLock returns the cancellation error and the caller does not hold m. If the hand-over and the cancellation
// meet, either may win.
//
// An Unlock synchronizes before the return of every RLock that comes after it.
func (m *RWMutex) RLock(ctx context.Context) error { return m.gate.Acquire(ctx, reader, writer) }

// LockOp is Lock as an Op.
func (m *RWMutex) LockOp() suspend.Op[struct{}] {
	return m.gate.Op(writer, writer)
}

// RLockOp is RLock as an Op. In a Select with the LockOp of the same RWMutex, put it first, or it queues behind the writer.
func (m *RWMutex) RLockOp() suspend.Op[struct{}] {
	return m.gate.Op(reader, writer)
}

// TryLock locks m for writing if no task holds it or waits for it, and reports whether it did. It never suspends.
func (m *RWMutex) TryLock() bool { return m.gate.TryAcquire(writer, writer) }

// TryRLock locks m for reading if no writer holds it and no task waits for it, and reports whether it did. It never suspends.
func (m *RWMutex) TryRLock() bool { return m.gate.TryAcquire(reader, writer) }

// Unlock unlocks m for writing, and hands it to the first waiters. It never suspends. It panics, and changes nothing, if m is not
// locked for writing.
func (m *RWMutex) Unlock() {
	if !m.gate.Release(writer, writer, writer) {
		panic("mutex: Unlock of an unlocked RWMutex")
	}
}

// RUnlock undoes one RLock. The last reader hands m to the writer that waits. It never suspends. It panics, and changes nothing, if m
// is not locked for reading.
func (m *RWMutex) RUnlock() {
	if !m.gate.Release(reader, reader, writer-1) {
		panic("mutex: RUnlock of an unlocked RWMutex")
	}
}

// Downgrade turns the caller's write lock into a read lock, with no other writer in between, and lets the first waiting readers in. It
// never suspends. It panics, and changes nothing, if m is not locked for writing.
func (m *RWMutex) Downgrade() {
	if !m.gate.Release(writer-reader, writer, writer) {
		panic("mutex: Downgrade of an unlocked RWMutex")
	}
}

// Locker returns a sync.Locker whose Lock is the Lock of m, without a context.
func (m *RWMutex) Locker() sync.Locker { return (*rwLocker)(m) }

// RLocker returns a sync.Locker whose Lock is the RLock of m, without a context.
func (m *RWMutex) RLocker() sync.Locker { return (*rLocker)(m) }

type (
	rwLocker RWMutex
	rLocker  RWMutex
)

func (l *rwLocker) Lock()   { _ = (*RWMutex)(l).Lock(context.Background()) }
func (l *rwLocker) Unlock() { (*RWMutex)(l).Unlock() }
func (l *rLocker) Lock()    { _ = (*RWMutex)(l).RLock(context.Background()) }
func (l *rLocker) Unlock()  { (*RWMutex)(l).RUnlock() }

package mutex

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// An RWMutex is held by one writer, or by any number of readers. The zero RWMutex is free and ready to use; it must not
// be copied. Whoever unlocks it need not be the one that locked it. A task that holds it must not ask for it again, not
// even as a reader: a writer may wait in between.
//
// It is handed over, strictly in the order in which tasks asked for it, so neither side starves: a reader that comes
// while a writer waits, waits behind it. When the lock comes free, the first waiter gets it, and if that is a reader,
// the readers right behind it as well, up to the next writer.
//
// The word says who holds the lock, and whether somebody waits; the queue, under the guard, who. -L> is a Lock, -U> an
// Unlock, either also of a reader, -C> a cancelled Lock. The lock is held by nobody, by the writer or by readers.
//
//	held         -L> held            it fits: a reader beside readers, or anybody where nobody holds
//	held         -L> held+waiting    it does not: it queues
//	held         -U> held            by one less
//	held+waiting -L> held+waiting    it queues
//	held+waiting -U> held[+waiting]  the first ones that fit are let in
//	held+waiting -C> held[+waiting]  and here as well, in case that it was a writer that kept readers out
//
// Invariant: whenever the guard is free and nobody is in debt, the first waiter does not fit; nobody changes a word that
// has waiting but under the guard; queued implies waiting. (The converse may fail: who found the lock held and then did not
// queue, being cancelled or a Select that takes another of its cases, leaves waiting behind, for the next one to put right.)
// Debt: who unlocks, and who leaves the queue with an error, owes the others a look at who fits now.
type RWMutex struct {
	word    atomicx.Uint64
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, uint64] // with what is to be added to the word: writer or reader
}

const (
	waiting uint64 = 1 << iota
	writer
	reader // times their number
)

// fits reports whether the lock can be held in this way, as well.
func fits(w, as uint64) bool { return w&writer == 0 && (as == reader || w < reader) }

// holds reports whether it is.
func holds(w, as uint64) bool { return w&writer == as&writer && w >= as }

// Lock locks m for writing, suspending the caller while anybody holds it or has been waiting for longer. If ctx is done
// first, or already, Lock returns the error of the cancellation and the caller does not hold m; readers that waited
// only because of it are let in at once. If the lock is handed over and ctx is done at once, one of them wins.
//
// The n'th Unlock, and what RUnlocks there were before, synchronize before the return of the n+1'th successful Lock.
func (m *RWMutex) Lock(ctx context.Context) error { return m.lock(ctx, writer) }

// RLock locks m for reading, suspending the caller while a writer holds it, or anybody has been waiting for longer. If
// ctx is done first, or already, RLock returns the error of the cancellation and the caller does not hold m. If the
// lock is handed over and ctx is done at once, one of them wins.
//
// An Unlock synchronizes before the return of every RLock that comes after it.
func (m *RWMutex) RLock(ctx context.Context) error { return m.lock(ctx, reader) }

// LockOp is Lock as an Op.
func (m *RWMutex) LockOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}](&rwLock{m, writer}) }

// RLockOp is RLock as an Op. In a Select with the LockOp of the same RWMutex it comes first, or it waits
// in line behind that.
func (m *RWMutex) RLockOp() suspend.Op[struct{}] { return suspend.OpOf[struct{}](&rwLock{m, reader}) }

// TryLock locks m for writing if nobody holds it or waits for it, and reports whether it did. It never suspends.
func (m *RWMutex) TryLock() bool { return m.tryLock(writer) }

// TryRLock locks m for reading if no writer holds it and nobody waits for it, and reports whether it did. It never
// suspends.
func (m *RWMutex) TryRLock() bool { return m.tryLock(reader) }

// Unlock unlocks m for writing, and hands it to the first who wait. It never suspends, and panics, changing nothing, if
// m is not locked for writing.
func (m *RWMutex) Unlock() { m.unlock(writer, 0, "mutex: Unlock of an unlocked RWMutex") }

// RUnlock undoes one RLock; the last reader hands m to the writer that waits. It never suspends, and panics, changing
// nothing, if m is not locked for reading.
func (m *RWMutex) RUnlock() { m.unlock(reader, 0, "mutex: RUnlock of an unlocked RWMutex") }

// Downgrade makes a reader of the writer that calls it, with no other writer in between, and lets the readers in that
// are the first who wait. It never suspends, and panics, changing nothing, if m is not locked for writing.
func (m *RWMutex) Downgrade() { m.unlock(writer, reader, "mutex: Downgrade of an unlocked RWMutex") }

// Locker returns a sync.Locker whose Lock is that of m, without a context.
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

func (m *RWMutex) lock(ctx context.Context, as uint64) error {
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if ok, _ := m.take(as); ok {
		return nil
	}
	_, err := suspend.Wait[struct{}](ctx, rwLock{m, as}, false)
	return err
}

func (m *RWMutex) tryLock(as uint64) bool {
	ok, sure := m.take(as)
	if !sure {
		m.guard.Lock()
		ok = m.takeLocked(as)
		m.letInLocked()
		m.guard.Unlock()
	}
	return ok
}

// take locks m if nobody waits, and reports whether it did. If it is not sure, the guard is needed to tell.
func (m *RWMutex) take(as uint64) (ok, sure bool) {
	for {
		w := m.word.Load()
		switch {
		case w&waiting != 0:
			return false, false
		case !fits(w, as):
			return false, true
		case m.word.CompareAndSwap(w, w+as):
			return true, true
		}
	}
}

// takeLocked is take for who may queue: if it reports false, waiting is set, and nothing changes without the guard.
func (m *RWMutex) takeLocked(as uint64) bool {
	w := m.word.Or(waiting) &^ waiting
	if m.waiters.Len() > 0 || !fits(w, as) {
		return false
	}
	m.word.Store(w + as)
	return true
}

// unlock turns holding m in one way into another.
func (m *RWMutex) unlock(as, then uint64, misuse string) {
	for {
		w := m.word.Load()
		switch {
		case w&waiting != 0:
			m.unlockSlow(as, then, misuse)
			return
		case !holds(w, as):
			panic(misuse)
		case m.word.CompareAndSwap(w, w-as+then):
			return
		}
	}
}

func (m *RWMutex) unlockSlow(as, then uint64, misuse string) {
	m.guard.Lock()
	ok := holds(m.word.Or(waiting), as)
	if ok {
		m.word.Add(then - as)
	}
	m.letInLocked()
	m.guard.Unlock()
	if !ok {
		panic(misuse)
	}
}

// letInLocked hands the lock to the first waiters, as far as they fit.
func (m *RWMutex) letInLocked() {
	w := m.word.Or(waiting) &^ waiting // from here on it is ours
	for as := m.waiters.Head(); as != nil && fits(w, *as); as = m.waiters.Head() {
		if as, ok := m.waiters.ResumeHead(struct{}{}, nil); ok {
			w += as
		}
	}
	if m.waiters.Len() > 0 {
		w |= waiting
	}
	m.word.Store(w)
}

// An rwLock is what Lock, RLock, LockOp and RLockOp perform.
type rwLock struct {
	*RWMutex
	as uint64
}

func (l rwLock) Guard() *suspend.Guard                 { return &l.guard }
func (l rwLock) Try() (v struct{}, ok bool, err error) { return v, l.takeLocked(l.as), nil }
func (l rwLock) Enqueue(r suspend.Resumer[struct{}])   { l.waiters.Push(r, l.as) }
func (l rwLock) Remove(r suspend.Resumer[struct{}])    { l.waiters.Remove(r); l.letInLocked() }

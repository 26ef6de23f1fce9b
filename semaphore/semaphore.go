// Package semaphore provides a weighted semaphore that can be waited for with a context, from any scheduler.
package semaphore

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of asking for more permits than the semaphore has altogether.
var ErrTooLarge = errors.New("semaphore: more permits than there are")

// A Semaphore is a number of permits, to be acquired and released, several at a time. Whoever releases them need not
// be the one that acquired them. It is made by New; it must not be copied. The zero Semaphore has no permits at all.
//
// Permits are granted strictly in the order in which they were asked for, and nobody overtakes: once somebody waits,
// all who come later wait behind it, even for permits that are free. So a large request is not starved by small ones.
// Permits are handed over: a waiter that is resumed has all of its permits, and one that waits has none of them.
//
// The word holds the free permits, times two, and whether somebody waits; the queue, under the guard, who. -A> is an
// Acquire, -R> a Release, -C> a cancelled Acquire.
//
//	free        -A> free            there are enough
//	free        -A> free+waited     too few: it queues
//	free        -R> free
//	free+waited -A> free+waited     it queues
//	free+waited -R> free[+waited]   the first ones that fit are granted theirs
//	free+waited -C> free[+waited]   and here as well, in case that it was the first that did not fit
//
// Invariant: whenever the guard is free and nobody is in debt, the first waiter does not fit; nobody changes a word that
// has waited but under the guard; queued implies waited. (The converse may fail: who found too few and then did not
// queue, being cancelled or a Select that takes another of its cases, leaves waited behind, for the next one to put right.)
// Debt: who adds free permits, and who leaves the queue with an error, owes a round of grants.
type Semaphore struct {
	word    atomicx.Uint64
	size    uint64 // never changes
	guard   suspend.Guard
	waiters suspend.Queue[struct{}, uint64] // with the number of permits asked for
}

// free permits are counted in units of one, above the flag.
const (
	waited uint64 = 1 << iota
	one
)

// New returns a semaphore of n permits, all free. It panics if n is negative.
func New(n int64) *Semaphore {
	s := &Semaphore{size: permits(n)}
	s.word.Store(s.size * one)
	return s
}

// Acquire takes n permits, all at once, suspending the caller until they are free and everybody who came earlier has
// got theirs. If ctx is done first, or already, Acquire returns the error of the cancellation and the caller has no
// permits; those behind it for whom there are enough get theirs at once. If the permits are granted and ctx is done at
// once, one of them wins.
//
// For more permits than s has altogether, which can never succeed, Acquire returns ErrTooLarge at once, and nobody waits
// behind it. To wait for ctx instead would hang in silence where ctx has no end. Acquire panics if n is negative.
//
// A Release synchronizes before the return of every Acquire that could not have returned without it.
func (s *Semaphore) Acquire(ctx context.Context, n int64) error {
	want := permits(n)
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if want > s.size {
		return ErrTooLarge
	}
	if ok, _ := s.take(want); ok {
		return nil
	}
	_, err := suspend.Wait[struct{}](ctx, acquire{s, want}, false)
	return err
}

// AcquireOp is Acquire as an Op. Two of them in one Select wait in line like those of two tasks, in the order
// of the cases: put the one that asks for less first, or it waits for the other.
func (s *Semaphore) AcquireOp(n int64) suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&acquire{s, permits(n)})
}

// TryAcquire takes n permits if they are free and nobody waits, and reports whether it did. It never suspends, and
// panics if n is negative.
func (s *Semaphore) TryAcquire(n int64) bool {
	want := permits(n)
	ok, sure := s.take(want)
	if !sure {
		s.guard.Lock()
		ok = s.takeLocked(want)
		s.grantLocked()
		s.guard.Unlock()
	}
	return ok
}

// Release gives n permits back, and grants them to those who wait, the longest waiting first, until there are too few
// for the next. It never suspends. It panics, and changes nothing, if n is negative or more than what is held.
func (s *Semaphore) Release(n int64) {
	back := permits(n)
	for {
		w := s.word.Load()
		switch {
		case w&waited != 0:
			s.releaseSlow(back)
			return
		case back > s.size-w/one:
			panic("semaphore: released more than held")
		case s.word.CompareAndSwap(w, w+back*one):
			return
		}
	}
}

func (s *Semaphore) releaseSlow(back uint64) {
	s.guard.Lock()
	ok := back <= s.size-s.word.Or(waited)/one
	if ok {
		s.word.Add(back * one)
	}
	s.grantLocked()
	s.guard.Unlock()
	if !ok {
		panic("semaphore: released more than held")
	}
}

// take takes the permits if nobody waits, and reports whether it did. If it is not sure, the guard is needed to tell.
func (s *Semaphore) take(want uint64) (ok, sure bool) {
	for {
		w := s.word.Load()
		switch {
		case w&waited != 0:
			return false, false
		case w/one < want:
			return false, true
		case s.word.CompareAndSwap(w, w-want*one):
			return true, true
		}
	}
}

// takeLocked is take for who may queue: if it reports false, waited is set, and nothing changes without the guard.
func (s *Semaphore) takeLocked(want uint64) bool {
	free := s.word.Or(waited) / one
	if s.waiters.Len() > 0 || free < want {
		return false
	}
	s.word.Store((free - want) * one)
	return true
}

// grantLocked grants the first waiters what they wait for, as far as there is enough.
func (s *Semaphore) grantLocked() {
	free := s.word.Or(waited) / one // from here on it is ours
	for want := s.waiters.Head(); want != nil && *want <= free; want = s.waiters.Head() {
		if n, ok := s.waiters.ResumeHead(struct{}{}, nil); ok {
			free -= n
		}
	}
	w := free * one
	if s.waiters.Len() > 0 {
		w |= waited
	}
	s.word.Store(w)
}

// permits is n, which leaves room for the flag.
func permits(n int64) uint64 {
	if n < 0 {
		panic("semaphore: negative number of permits")
	}
	return uint64(n)
}

// An acquire is what Acquire and AcquireOp perform.
type acquire struct {
	*Semaphore
	want uint64
}

func (a acquire) Guard() *suspend.Guard { return &a.guard }

func (a acquire) Try() (v struct{}, ok bool, err error) {
	if a.want > a.size {
		return v, true, ErrTooLarge
	}
	return v, a.takeLocked(a.want), nil
}

func (a acquire) Enqueue(r suspend.Resumer[struct{}]) { a.waiters.Push(r, a.want) }

func (a acquire) Remove(r suspend.Resumer[struct{}]) {
	a.waiters.Remove(r)
	a.grantLocked()
}

// Package semaphore provides a weighted semaphore that can be waited for with a context, from any scheduler.
package semaphore

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/gate"
	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of asking for more permits than the semaphore has altogether.
var ErrTooLarge = errors.New("semaphore: more permits than there are")

// A Semaphore is a number of permits, to be acquired and released, several at a time. Another task than the one that
// acquired them may release them. It is made by New; it must not be copied. The zero Semaphore has no permits at all.
//
// Permits are granted strictly in the order in which they were asked for: once a task waits, all that come later wait
// behind it, even for permits that are free. So a large request is not starved by small ones. Permits are handed over: a
// waiter that is resumed has all of its permits, and one that waits has none of them.
type Semaphore struct {
	size uint64 // never changes
	gate gate.Gate
}

// New returns a semaphore of n permits, all free. It panics if n is negative.
func New(n int64) *Semaphore {
	s := &Semaphore{size: permits(n)}
	s.gate.Limit(s.size)
	return s
}

// Acquire takes n permits, all at once, suspending the caller until they are free and all that came earlier have
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
	if want > s.size {
		if err := suspend.Err(ctx); err != nil {
			return err
		}
		return ErrTooLarge
	}
	return s.gate.Acquire(ctx, want)
}

// AcquireOp is Acquire as an Op. Two of them in one Select wait in line like those of two tasks, in the order
// of the cases: put the one that asks for less first, or it waits for the other.
func (s *Semaphore) AcquireOp(n int64) suspend.Op[struct{}] {
	want := permits(n)
	return suspend.OpOf[struct{}](&acquire{gate.Request{Gate: &s.gate, N: want}, want > s.size})
}

// TryAcquire takes n permits if they are free and nobody waits, and reports whether it did. It never suspends, and
// panics if n is negative.
func (s *Semaphore) TryAcquire(n int64) bool {
	want := permits(n)
	return want <= s.size && s.gate.TryAcquire(want)
}

// Release gives n permits back, and grants them to those that wait, the longest waiting first, until there are too few
// for the next. It never suspends. It panics, and changes nothing, if n is negative or more than what is held.
func (s *Semaphore) Release(n int64) {
	back := permits(n)
	if back > s.size || !s.gate.Release(back, gate.Max-s.size+back, gate.Max) {
		panic("semaphore: released more than held")
	}
}

// permits is n.
func permits(n int64) uint64 {
	if n < 0 {
		panic("semaphore: negative number of permits")
	}
	return uint64(n)
}

// An acquire is what AcquireOp performs.
type acquire struct {
	gate.Request
	tooLarge bool
}

// Try implements suspend.Source.
func (a *acquire) Try() (v struct{}, ok bool, err error) {
	if a.tooLarge {
		return v, true, ErrTooLarge
	}
	return a.Request.Try()
}

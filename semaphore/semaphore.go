// Package semaphore provides a weighted semaphore whose Acquire takes a context. Tasks of any scheduler can share it.
//
//	memory := semaphore.New(1 << 30)
//	if err := memory.Acquire(ctx, size); err != nil {
//		return err // ctx is done, or size is too large; no permit is held
//	}
//	defer memory.Release(size)
//
// Permits are granted in strict order, so small requests do not starve a large request. A cancelled Acquire holds no permits, and a request
// that can never succeed fails immediately.
//
// For a single permit, a mutex.Mutex is faster. If only goroutines use the semaphore, golang.org/x/sync/semaphore is enough. To limit the
// number of tasks in a group, use scope.Limit.
package semaphore

import (
	"context"

	"github.com/braidgo/braid/internal/gate"
	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of a request for more permits than the semaphore has in total. Request fewer permits, or call Resize.
var ErrTooLarge = gate.ErrTooLarge

// ErrClosed is the error of requests that wait when the semaphore is closed, of later requests, and of a second Close.
var ErrClosed = gate.ErrClosed

// A Semaphore has a number of permits, which tasks acquire and release. One call can acquire or release several permits. One task may
// acquire a permit, and another task may release it. New makes a Semaphore, which must not be copied. The zero Semaphore has no permits.
// After a Resize or a Close, every operation locks an internal mutex briefly.
//
// Permits are granted strictly in the order of the requests. While a task waits, all later requests queue behind it, even if enough permits
// are free. Otherwise small requests could starve a large request. A waiting task holds none of its permits. All of them are handed over to
// the task before it resumes.
type Semaphore struct {
	size uint64 // the number of permits given to New; a Resize does not change it
	gate gate.Gate
}

// New returns a Semaphore with n permits, all of which are free. It panics if n is negative.
func New(n int64) *Semaphore {
	return &Semaphore{size: permits(n)}
}

// Acquire acquires n permits, all of them or none. It suspends the caller until n permits are free and no earlier request waits.
//
// If ctx is done before the call or during the wait, Acquire returns the cancellation error, and the caller holds no permits. Waiters
// behind the caller are then granted their permits if enough are free. If the grant races with the cancellation, either may win.
//
// If n is more than the total number of permits, Acquire returns ErrTooLarge immediately, because such a request could never succeed. If s
// is closed before the call or during the wait, Acquire returns ErrClosed. It panics if n is negative.
//
// A Release synchronizes before the return of every Acquire that needed its permits.
func (s *Semaphore) Acquire(ctx context.Context, n int64) error {
	return s.gate.Acquire(ctx, permits(n), s.size)
}

// AcquireOp returns an Op that performs Acquire. If a Select has two such cases for the same Semaphore, they queue in the order of the
// cases. Put the smaller request first, because otherwise it waits behind the larger request.
func (s *Semaphore) AcquireOp(n int64) suspend.Op[struct{}] {
	return s.gate.Op(permits(n), s.size)
}

// TryAcquire acquires n permits if n permits are free and no task waits, and reports whether it did. It never suspends. It panics if n is
// negative.
func (s *Semaphore) TryAcquire(n int64) bool {
	return s.gate.TryAcquire(permits(n), s.size)
}

// Release releases n permits. It grants free permits to the waiters, in the order of their requests, until too few are free for the next
// waiter. Release never suspends. If n is negative, or more than the number of permits that are held, Release panics and changes nothing.
func (s *Semaphore) Release(n int64) {
	back := permits(n)
	if back > 0 && !s.gate.Release(back, back, gate.Max) {
		panic("semaphore: released more than held")
	}
}

// Resize sets the total number of permits to n. It grants new permits to waiters at once. If more than n permits are held, they stay valid,
// but released permits are dropped until only n are left. A waiter that wants more than n permits gets ErrTooLarge when it is the first
// waiter. Resize never suspends. It panics if n is negative.
func (s *Semaphore) Resize(n int64) { s.gate.Resize(permits(n)) }

// Close closes s, so that no more permits are granted. All waiters are resumed with ErrClosed, in order. Permits that are held can still be
// released. A second Close changes nothing and returns ErrClosed. Close never suspends.
func (s *Semaphore) Close() error {
	if !s.gate.Close(s.size) {
		return ErrClosed
	}
	return nil
}

// permits returns n as a uint64. It panics if n is negative.
func permits(n int64) uint64 {
	if n < 0 {
		panic("semaphore: negative number of permits")
	}
	return uint64(n)
}

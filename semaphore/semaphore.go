// Package semaphore provides a weighted semaphore that can be waited for with a context, from any scheduler.
//
//	memory := semaphore.New(1 << 30)
//	if err := memory.Acquire(ctx, size); err != nil {
//		return err // ctx is done, or size is more than there is: no permit is held
//	}
//	defer memory.Release(size)
//
// Permits are granted in strict order, so small requests do not starve a large one. A cancelled Acquire holds nothing, and a request
// that can never succeed fails immediately.
//
// For one permit a mutex.Mutex is faster. For goroutines alone, golang.org/x/sync/semaphore suffices. For at most n tasks of a
// group, see scope.Limit.
package semaphore

import (
	"context"
	"math"

	"github.com/braidgo/braid/internal/gate"
	"github.com/braidgo/braid/suspend"
)

// ErrTooLarge is the error of a request for more permits than the semaphore has altogether. Ask for less, or make it larger.
var ErrTooLarge = gate.ErrTooLarge

// ErrClosed is the error of a request that waits at the Close or comes after it, and of a second Close.
var ErrClosed = gate.ErrClosed

// A Semaphore is a number of permits that tasks acquire and release, several in one call. One task may acquire a permit and another
// release it. New makes a Semaphore, and it must not be copied. The zero Semaphore has no permits. After a Resize or a Close each
// operation takes a lock for an instant.
//
// Permits are granted strictly in the order of the requests. As long as one task waits, all later requests queue behind it, even for
// permits that are free. Otherwise small requests could starve a large request. Permits are handed over: a resumed waiter has all of its
// permits, but a waiting task has none.
type Semaphore struct {
	size uint64 // counts until the first Resize; never changes
	gate gate.Gate
}

// New returns a semaphore of n permits, all free. It panics if n is negative.
func New(n int64) *Semaphore {
	s := &Semaphore{size: permits(n)}
	s.gate.Limit(s.size)
	return s
}

// Acquire takes n permits, all of them or none. It suspends the caller until they are free and all earlier requests are granted.
//
// If ctx is done first, or already, Acquire returns the cancellation error and the caller has no permits. Waiters behind it that fit
// now get theirs. If the grant and the cancellation meet, either may win.
//
// A request for more permits than s has altogether can never succeed. Acquire returns ErrTooLarge for it, and no task waits behind it. If s
// is closed first, or already, it returns ErrClosed. It panics if n is negative.
//
// A Release synchronizes before the return of every Acquire that could not have returned without it.
func (s *Semaphore) Acquire(ctx context.Context, n int64) error {
	return s.gate.Acquire(ctx, permits(n), s.size)
}

// AcquireOp is Acquire as an Op. Two such cases of one Select queue like two tasks, in the order of the cases. Put the smaller
// request first, or it waits for the larger one.
func (s *Semaphore) AcquireOp(n int64) suspend.Op[struct{}] {
	return s.gate.Op(permits(n), s.size)
}

// TryAcquire takes n permits if they are free and no task waits, and reports whether it did. It never suspends, and panics if n is
// negative.
func (s *Semaphore) TryAcquire(n int64) bool {
	return s.gate.TryAcquire(permits(n), s.size)
}

// Release gives n permits back. It grants them to the waiters, the longest waiting first, until there are too few for the next. It
// never suspends. It panics, and changes nothing, if n is negative or more than the permits that are held.
func (s *Semaphore) Release(n int64) {
	back := permits(n)
	if back > 0 && !s.gate.Release(back, gate.Max-s.size+back, math.MaxUint64) {
		panic("semaphore: released more than held")
	}
}

// Resize makes n the number of permits. New permits go to the waiters at once. If more than n are held, they stay valid, and the surplus is
// lost as permits come back. A waiter for more than n gets ErrTooLarge when it is the first. Resize never suspends, and panics if n is
// negative.
func (s *Semaphore) Resize(n int64) { s.gate.Resize(s.size, permits(n)) }

// Close says that no more permits will be granted. All waiters are resumed with ErrClosed, in order. Permits that are held can be
// released. A second Close changes nothing and returns ErrClosed. It never suspends.
func (s *Semaphore) Close() error {
	if !s.gate.Close(s.size) {
		return ErrClosed
	}
	return nil
}

// permits converts n.
func permits(n int64) uint64 {
	if n < 0 {
		panic("semaphore: negative number of permits")
	}
	return uint64(n)
}

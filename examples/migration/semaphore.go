package migration

import (
	"context"

	xsemaphore "golang.org/x/sync/semaphore"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/semaphore"
)

// lockBefore is a lock with a context: a semaphore of one permit.
type lockBefore struct {
	sem   *xsemaphore.Weighted
	total int
}

func newLockBefore() *lockBefore { return &lockBefore{sem: xsemaphore.NewWeighted(1)} }

func (l *lockBefore) add(ctx context.Context, n int) error {
	if err := l.sem.Acquire(ctx, 1); err != nil {
		return err
	}
	defer l.sem.Release(1)
	l.total += n
	return nil
}

type lockAfter struct {
	mu    mutex.Mutex // the zero value is ready
	total int
}

func (l *lockAfter) add(ctx context.Context, n int) error {
	if err := l.mu.Lock(ctx); err != nil {
		return err
	}
	defer l.mu.Unlock()
	l.total += n
	return nil
}

// memoryBefore bounds the memory of requests. A request for more than there is waits until ctx ends.
type memoryBefore struct{ free *xsemaphore.Weighted }

func (m memoryBefore) use(ctx context.Context, n int64, f func()) error {
	if err := m.free.Acquire(ctx, n); err != nil {
		return err
	}
	defer m.free.Release(n)
	f()
	return nil
}

type memoryAfter struct{ free *semaphore.Semaphore }

func (m memoryAfter) use(ctx context.Context, n int64, f func()) error {
	if err := m.free.Acquire(ctx, n); err != nil { // semaphore.ErrTooLarge, immediately
		return err
	}
	defer m.free.Release(n)
	f()
	return nil
}

package beside

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// In a memoryUsual, a request for more than the limit waits until its context ends.
type memoryUsual struct{ free *semaphore.Weighted }

func newMemoryUsual(n int64) memoryUsual { return memoryUsual{semaphore.NewWeighted(n)} }

func (m memoryUsual) use(ctx context.Context, n int64, f func()) error {
	if err := m.free.Acquire(ctx, n); err != nil {
		return err
	}
	defer m.free.Release(n)
	f()
	return nil
}

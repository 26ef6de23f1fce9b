package beside

import (
	"context"

	"github.com/braidgo/braid/semaphore"
)

// A memory bounds the bytes of requests. A request for more than n bytes fails at once instead of waiting.
type memory struct{ free *semaphore.Semaphore }

func newMemory(n int64) memory { return memory{semaphore.New(n)} }

func (m memory) use(ctx context.Context, n int64, f func()) error {
	if err := m.free.Acquire(ctx, n); err != nil { // semaphore.ErrTooLarge, immediately
		return err
	}
	defer m.free.Release(n)
	f()
	return nil
}

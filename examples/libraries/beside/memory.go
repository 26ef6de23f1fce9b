package beside

import (
	"context"

	"github.com/braidgo/braid/semaphore"
)

// A memory limits the number of bytes that all requests use together. A request for more than the limit fails at once.
type memory struct{ free *semaphore.Semaphore }

func newMemory(n int64) memory { return memory{semaphore.New(n)} }

func (m memory) use(ctx context.Context, n int64, f func()) error {
	if err := m.free.Acquire(ctx, n); err != nil { // returns semaphore.ErrTooLarge at once if n exceeds the limit
		return err
	}
	defer m.free.Release(n)
	f()
	return nil
}

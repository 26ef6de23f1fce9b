package mutex_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/mutex"
)

// once is a context that breaks its contract: its first Err returns an error, and later calls return nil. suspend.Err returns
// context.Canceled instead.
type once struct {
	context.Context
	asked int
}

func (c *once) Err() error {
	if c.asked++; c.asked == 1 {
		return context.Canceled
	}
	return nil
}

func TestLockOfABrokenContext(t *testing.T) {
	var m mutex.Mutex
	m.TryLock()
	if err := m.LockContext(&once{context.Background(), 0}); err == nil {
		t.Error("Lock has returned nil, and another task holds the lock")
	}
}

package mutex

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/suspend"
)

// An Unlock too many panics, and takes the lock from nobody, also while another Unlock hands it over.
func TestUnlockDuringAHandOver(t *testing.T) {
	var m Mutex
	m.Lock()
	owns := make(chan error)
	go func() {
		_, err := suspend.Do(context.Background(), m.LockOp())
		owns <- err
	}()
	until := func(what string, isSo func() bool) {
		t.Helper()
		require.Eventually(t, isSo, time.Minute, time.Millisecond, what)
	}
	until("the LockOp waits", func() bool {
		m.guard.Lock()
		defer m.guard.Unlock()
		return m.waiters.Len() == 1
	})
	m.guard.Lock()
	m.word.Or(due) // as after four lost competitions
	unlocked := make(chan struct{})
	go func() {
		defer close(unlocked)
		m.Unlock()
	}()
	until("the Unlock is about to hand the lock over", func() bool { return m.word.Load() == waited|due })
	panicked := make(chan any)
	go func() {
		defer func() { panicked <- recover() }()
		m.Unlock()
	}()
	until("the other Unlock has added", func() bool { return m.word.Load() != waited|due })
	m.guard.Unlock()
	require.Equal(t, "mutex: Unlock of an unlocked Mutex", <-panicked)
	<-unlocked
	require.NoError(t, <-owns)
	require.False(t, m.TryLock(), "the LockOp holds the lock")
	m.Unlock()
	require.True(t, m.TryLock())
}

// A cancelled waiter may hand the lock over to a LockOp that is cancelled, too. A TryLock beside it waits for the end of the hand-over, because nobody
// holds the lock.
func TestTryLockDuringAHandOver(t *testing.T) {
	var m Mutex
	m.word.Store(waited | due)
	m.guard.Lock()
	locked := make(chan bool, 1)
	go func() { locked <- m.TryLock() }()
	select {
	case <-locked:
		t.Fatal("TryLock does not wait for the hand-over")
	case <-time.After(20 * time.Millisecond):
	}
	m.word.Store(0)
	m.guard.Unlock()
	require.True(t, <-locked)
}

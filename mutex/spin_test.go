package mutex_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
)

// A goroutine that finds the Mutex held looks at it for a while, and locks it without a wait if it becomes unlocked.
func TestSpin(t *testing.T) {
	defer schedtest.Within(t, time.Minute)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var m mutex.Mutex
	m.Lock()
	require.False(t, m.Spin(), "of a held Mutex; now it knows the number of processors, too")
	for locked := false; !locked; { // the goroutine may be late
		var begun atomic.Bool
		go func() {
			for !begun.Load() {
			}
			m.Unlock()
		}()
		begun.Store(true)
		if locked = m.Spin(); !locked {
			m.Lock()
		}
	}
	require.False(t, m.TryLock())
	m.Unlock()
}

// With one processor, and in a task, there is nothing to wait for by spinning: the holder cannot run at the same time.
func TestNoSpin(t *testing.T) {
	var m mutex.Mutex
	t.Run("one processor", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		m.Lock()
		m.Spin()
		m.Unlock()
		require.False(t, m.Spin())
	})
	t.Run("a task", func(t *testing.T) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
		m.Lock()
		m.Spin()
		m.Unlock()
		schedtest.OnFIFO(t, func(*fifo.Scheduler) { require.False(t, m.Spin()) })
		require.True(t, m.Spin())
		m.Unlock()
	})
}

// A goroutine that has locked the Mutex by spinning unlocks it again if its context has ended meanwhile.
func TestSpinOfACancelledLock(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var m mutex.Mutex
	m.Lock()
	m.Spin()
	m.Unlock()
	ctx, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, m.LockSlow(ctx), context.Canceled)
	require.True(t, m.TryLock())
}

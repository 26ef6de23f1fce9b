package chance

import (
	"context"
	"iter"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/splitmix"
)

// TestOverlaid tests by their effects whether the edits of simulation/overlay are on. The test of simulation/overlay runs it with
// BRAID_OVERLAID.
func TestOverlaid(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := opened(t)
	overlaid := os.Getenv("BRAID_OVERLAID") != ""
	require.Equal(t, overlaid, s.Overlaid())
	if !overlaid {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		timers := chances["timers of one moment"]
		s.Seed(1)
		s.SeedCheap(1)
		first := timers(t)
		s.Seed(1)
		s.SeedCheap(2)
		require.Equal(t, first, timers(t), "the order of timers is of cheaprand")
	})
	// The clock advances although a goroutine waits for a mutex.
	synctest.Test(t, func(*testing.T) {
		var m sync.Mutex
		var rw sync.RWMutex
		var all sync.WaitGroup
		pass := func(l sync.Locker) {
			l.Lock()
			defer l.Unlock()
		}
		m.Lock()
		rw.Lock()
		all.Go(func() { pass(&m) })
		all.Go(func() { pass(&rw) })
		all.Go(func() { pass(rw.RLocker()) })
		time.Sleep(time.Second)
		m.Unlock()
		rw.Unlock()
		all.Wait()
	})
	// A goroutine of a bubble that computes for more than 10 ms is not preempted.
	steps, x := 1000, uint64(0)
	spin := func() {
		for range steps {
			x = splitmix.Mix(x)
		}
	}
	for begin := time.Now(); time.Since(begin) < 200*time.Millisecond; steps *= 2 {
		spin()
	}
	synctest.Test(t, func(t *testing.T) {
		other := false
		go func() { other = true }()
		spin()
		require.False(t, other)
	})
}

// TestOverlaidNodes tests that goroutines belong to the node of the goroutine that has started them, also through timers.
func TestOverlaidNodes(t *testing.T) {
	overlaid := os.Getenv("BRAID_OVERLAID") != ""
	require.Equal(t, overlaid, Nodes())
	require.Zero(t, Node())
	if !overlaid {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		defer SetNode(0)
		SetNode(7)
		seen := func(start func(f func())) uint32 {
			node := make(chan uint32)
			start(func() { node <- Node() })
			return <-node
		}
		after := func(f func()) { time.AfterFunc(time.Second, f) }
		require.EqualValues(t, 7, Node())
		require.EqualValues(t, 7, seen(func(f func()) { go f() }))
		require.EqualValues(t, 7, seen(after))
		require.EqualValues(t, 7, seen(func(f func()) { go func() { after(f) }() }))
		require.EqualValues(t, 7, seen(func(f func()) { after(func() { after(f) }) }))
		require.EqualValues(t, 7, seen(func(f func()) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			context.AfterFunc(ctx, func() { cancel(); f() })
		}))
		require.EqualValues(t, 7, seen(func(f func()) { // a coroutine
			next, stop := iter.Pull(func(func(int) bool) { go f() })
			defer stop()
			next()
		}))
		require.EqualValues(t, 8, seen(func(f func()) { // a timer of another node, which this node resets
			timer := time.AfterFunc(time.Hour, f)
			SetNode(8)
			timer.Reset(time.Second)
			SetNode(7)
		}))
		SetNode(0)
		require.Zero(t, seen(after))
		require.Zero(t, seen(func(f func()) { go f() }))
	})
}

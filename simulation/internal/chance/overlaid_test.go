package chance

import (
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

// TestOverlaidNodes tests that the functions for nodes are those of the runtime. The tests of package edited test their effects.
func TestOverlaidNodes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	overlaid := os.Getenv("BRAID_OVERLAID") != ""
	require.Equal(t, overlaid, Nodes())
	require.Zero(t, Node())
	require.Zero(t, Blocked())
	if !overlaid {
		return
	}
	ran := false
	ready := make(chan bool)
	done := make(chan bool, 1)
	go func() {
		SetNode(7)
		require.EqualValues(t, 7, Node())
		ready <- true
		<-done
		ran = true
	}()
	<-ready
	for range 100 {
		runtime.Gosched()
	}
	Crash(7)
	done <- true
	for range 100 {
		runtime.Gosched()
	}
	require.False(t, ran)
}

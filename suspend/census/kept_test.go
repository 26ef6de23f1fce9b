package census_test

import (
	"reflect"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// freed waits until the garbage collector has freed n objects. Each sends on frees.
func freed(t *testing.T, n int, frees <-chan struct{}) {
	t.Helper()
	for range 300 {
		runtime.GC()
		for n > 0 {
			select {
			case <-frees:
				n--
				continue
			case <-time.After(10 * time.Millisecond):
			}
			break
		}
		if n == 0 {
			return
		}
	}
	require.Zero(t, n, "are still there")
}

// The census records a continuation, but does not keep it alive when the object for which it waits becomes garbage.
func TestContinuationsAreNotKept(t *testing.T) {
	on(t)
	frees := make(chan struct{}, 10)
	for range 10 {
		large := new([1 << 10]byte)
		runtime.AddCleanup(large, func(int) { frees <- struct{}{} }, 0)
		p := promise.New[int]()
		suspend.Then(bg, p.AwaitOp(), executor{}, func(v int, _ error) { large[v]++ })
	}
	freed(t, 10, frees)
}

// A mutex that becomes garbage while it is locked is forgotten. A new mutex at the same address has no holder.
func TestDroppedLocks(t *testing.T) {
	on(t)
	const n = 100
	frees := make(chan struct{}, n)
	for range n {
		large := new(struct {
			m mutex.Mutex
			_ [1 << 10]byte
		})
		runtime.AddCleanup(large, func(int) { frees <- struct{}{} }, 0)
		large.m.Lock()
	}
	holds := func() (n int) {
		for _, t := range census.Take().Tasks {
			n += len(t.Holds)
		}
		return n
	}
	freed(t, n, frees)
	require.Zero(t, holds())
}

// A new mutex may be locked at the address of a lost one before the next snapshot. Only its own holder may be reported.
func TestALockWhereAnotherWas(t *testing.T) {
	on(t)
	type large struct {
		m mutex.Mutex
		_ [1 << 10]byte
	}
	const n = 10 // few enough that no record is swept
	frees, dropped := make(chan struct{}, n), map[uintptr]bool{}
	for range n {
		l := new(large)
		runtime.AddCleanup(l, func(int) { frees <- struct{}{} }, 0)
		l.m.Lock()
		dropped[reflect.ValueOf(l).Pointer()] = true
	}
	freed(t, n, frees)
	l := new(large)
	for i := 0; !dropped[reflect.ValueOf(l).Pointer()]; i++ {
		require.Less(t, i, 1<<20, "the memory is not used again")
		l = new(large)
	}
	l.m.Lock()
	holds := 0
	for _, t := range census.Take().Tasks {
		holds += len(t.Holds)
	}
	require.Equal(t, 1, holds)
	l.m.Unlock()
}

// A stopped watch reports nothing, even if another watch keeps the census on, and whether a report or the caller stopped it.
func TestStoppedWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer census.Start(census.Options{StuckAfter: -1})()
		reports, stop := stuck(t)
		own := 0
		var stopOwn func()
		stopOwn = census.Start(census.Options{OnStuck: func(string) { own++; stopOwn() }})
		p := promise.New[int]()
		go func() { _, _ = p.Await(bg) }()
		time.Sleep(22 * time.Second)
		require.Len(t, reports(), 1)
		stop()
		time.Sleep(time.Hour)
		require.Len(t, reports(), 1)
		require.Equal(t, 1, own)
		p.Fill(1)
	})
}

package workstealing_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// deep uses n KB of stack.
//
//go:noinline
func deep(n int) int {
	var b [1 << 10]byte
	b[n%len(b)] = byte(n)
	if n == 0 {
		return int(b[0])
	}
	return deep(n-1) + int(b[n%len(b)])
}

// The stacks of idle coroutines are kept for the next tasks, but not for ever: each garbage collection halves them.
func TestKeptStacksShrink(t *testing.T) {
	const n, size = 100, 100 << 10
	stacks := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.StackInuse)
	}
	runtime.GC()
	before := stacks()
	pool := workstealing.New(workstealing.Options{Workers: 1})
	defer pool.Close()
	var begun, all sync.WaitGroup
	begun.Add(n)
	end := promise.New[int]()
	for range n {
		all.Add(1)
		require.NoError(t, pool.Go(func() {
			defer all.Done()
			deep(size >> 10)
			begun.Done()
			_, _ = end.Await(context.Background())
		}))
	}
	begun.Wait()
	require.Greater(t, stacks()-before, n*size)
	end.Fill(1)
	all.Wait()
	for range 8 {
		runtime.GC()
	}
	require.Less(t, (stacks()-before)/n, 10<<10)
}

// burst starts n tasks that use the given KB of stack and then wait for each other.
func burst(pool *workstealing.Pool, n, size int) {
	var begun, all sync.WaitGroup
	begun.Add(n)
	end := promise.New[int]()
	for range n {
		all.Add(1)
		_ = pool.Go(func() {
			defer all.Done()
			deep(size)
			begun.Done()
			_, _ = end.Await(context.Background())
		})
	}
	begun.Wait()
	end.Fill(1)
	all.Wait()
}

// The coroutines of a burst are kept for the next burst, but not for longer than ten seconds without one. Coroutines that are needed from
// time to time stay, and no timer is left when nothing is kept.
func TestKeptCoroutinesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := workstealing.New(workstealing.Options{Workers: 1})
		defer pool.Close()
		coroutines := func() int64 { synctest.Wait(); return pool.Stats().Coroutines }
		burst(pool, 200, 64)
		require.EqualValues(t, 200, coroutines())
		time.Sleep(4 * time.Second)
		require.EqualValues(t, 200, coroutines())
		burst(pool, 200, 64)
		require.EqualValues(t, 200, coroutines())
		for range 15 {
			time.Sleep(time.Second)
			require.GreaterOrEqual(t, coroutines(), int64(10))
			burst(pool, 10, 1)
		}
		require.EqualValues(t, 10, coroutines())
		time.Sleep(10 * time.Second)
		require.Zero(t, coroutines())
		burst(pool, 1000, 1)
		require.EqualValues(t, 256, coroutines())
	})
}

// Each coroutine is counted until it ends: with its task, with the pool, or because too many are kept.
func TestCoroutinesAreCounted(t *testing.T) {
	pool := workstealing.New(workstealing.Options{Workers: 3})
	for range 3 {
		burst(pool, 1000, 1)
		pool.Drop()
	}
	_ = pool.Go(runtime.Goexit)
	require.NotZero(t, pool.Stats().Coroutines)
	require.NoError(t, pool.Close())
	require.Zero(t, pool.Stats().Coroutines)
}

// A worker that never sleeps drops the coroutines that it does not need, too.
func TestABusyWorkerDropsCoroutines(t *testing.T) {
	withPool(t, workstealing.Options{Workers: 1}, func(pool *workstealing.Pool) {
		burst(pool, 200, 1)
		in(pool, func() {
			for range 2 {
				pool.Drop()
				suspend.Yield()
			}
			for pool.Stats().Coroutines > 1 { // they are stopped on another goroutine
				suspend.Yield()
			}
		})
	})
}

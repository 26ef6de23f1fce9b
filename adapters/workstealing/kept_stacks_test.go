package workstealing_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
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

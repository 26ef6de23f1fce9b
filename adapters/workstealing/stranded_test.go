package workstealing_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
)

// A task has ended with its thread locked. A later task of its worker holds the worker: the report names the later one.
func TestAStallBehindALockedThread(t *testing.T) {
	var mu sync.Mutex
	var all []string
	p := workstealing.New(workstealing.Options{Workers: 1, StallAfter: 100 * time.Millisecond, OnStall: func(r []byte) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, string(r))
	}})
	defer p.Close()
	for range 3 {
		require.NoError(t, p.Go(func() { runtime.LockOSThread() }))
	}
	stop := make(chan struct{})
	require.NoError(t, p.Go(func() { holdsTheWorker(stop) }))
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(all, "\n"), "holdsTheWorker")
	}, 30*time.Second, 10*time.Millisecond, "no report names the task that waits natively")
	close(stop)
	mu.Lock()
	defer mu.Unlock()
	require.NotContains(t, strings.Join(all, "\n"), ".strand(", "a report names a task that has ended")
}

//go:noinline
func holdsTheWorker(stop chan struct{}) { <-stop }

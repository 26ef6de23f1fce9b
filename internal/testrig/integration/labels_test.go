package integration_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/simulation"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// labelsHere returns the profiler labels of the calling goroutine, as a profile shows them.
func labelsHere() string {
	looking.Lock()
	defer looking.Unlock()
	return labelsOfOne()
}

var looking sync.Mutex

//go:noinline
func labelsOfOne() string {
	var all bytes.Buffer
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	for entry := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(entry, "integration_test.labelsOfOne") {
			if _, labels, ok := strings.Cut(entry, "# labels: "); ok {
				labels, _, _ = strings.Cut(labels, "\n")
				return labels
			}
			return ""
		}
	}
	return "no such goroutine"
}

// A task that sets labels leaves them to no other: neither to one that has its coroutine next, nor to one that its end lets run.
func TestLabelsDoNotLeak(t *testing.T) {
	labelled := pprof.WithLabels(context.Background(), pprof.Labels("request", "1"))
	leaks := func(t *testing.T, s suspend.Spawner) {
		var leaked []string
		for range 3 {
			first, release := make(chan struct{}), make(chan struct{})
			begun := make(chan string, 3)
			require.NoError(t, s.Go(func() {
				pprof.SetGoroutineLabels(labelled)
				close(first)
				<-release
				begun <- labelsHere()
			}))
			<-first
			for range 2 {
				require.NoError(t, s.Go(func() { begun <- labelsHere() }))
			}
			close(release)
			for range 3 {
				leaked = append(leaked, <-begun)
			}
		}
		with := 0
		for _, labels := range leaked {
			if labels != "" {
				require.Equal(t, `{"request":"1"}`, labels)
				with++
			}
		}
		require.Equal(t, 3, with, "%q", leaked)
	}
	schedtest.Each(t, leaks)
	t.Run("limited", func(t *testing.T) {
		for n := range 3 {
			s := limited.New(n+1, limited.Options{})
			leaks(t, s)
			require.NoError(t, s.Close())
		}
	})
	t.Run("simulation", func(t *testing.T) {
		require.NoError(t, simulation.Run(simulation.Options{}, func(ctx context.Context, w *simulation.World) error {
			for n := range 3 {
				if labels := labelsHere(); labels != "" {
					t.Errorf("main: %s", labels)
				}
				require.NoError(t, w.Go(func() {
					if labels := labelsHere(); labels != "" {
						t.Errorf("task %d: %s", n, labels)
					}
					pprof.SetGoroutineLabels(labelled)
				}))
				suspend.Yield()
			}
			return nil
		}).Err)
	})
}

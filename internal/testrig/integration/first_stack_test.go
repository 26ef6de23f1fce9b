// On other architectures, the frames are larger.

//go:build !race && (amd64 || arm64)

package integration_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A task that waits in an operation of a primitive fits into the initial stack of its goroutine, on each scheduler. With a larger frame on
// the way, each waiting task would take 2 KB more.
func TestFirstStack(t *testing.T) {
	waits := map[string]func() (wait, end func()){
		"Recv": func() (wait, end func()) {
			c := chanx.New[int](0)
			return func() { _, _ = c.Recv(bg) }, func() { _ = c.Close() }
		},
		"Take": func() (wait, end func()) {
			v := mvar.New[int]()
			return func() {
				x, _ := v.Take(bg)
				_ = v.Put(bg, x)
			}, func() { v.TryPut(1) }
		},
		"Lock": func() (wait, end func()) {
			var mu mutex.Mutex
			inside := 0
			mu.Lock()
			return func() {
				mu.Lock()
				inside++
				mu.Unlock()
			}, mu.Unlock
		},
		"Await": func() (wait, end func()) {
			p := promise.New[int]()
			return func() { _, _ = p.Await(bg) }, func() { p.Fill(1) }
		},
	}
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		if strings.HasSuffix(t.Name(), "/goroutines") {
			return // a goroutine without a task waits in other functions
		}
		for name, open := range waits {
			t.Run(name, func(t *testing.T) {
				if os.Getenv("BRAID_FIRST_STACK") == "" { // in a new process, because the runtime adapts the size of initial stacks
					var out []byte
					err := errors.New("no run")
					for i := 0; i < 3 && err != nil; i++ { // on a busy machine, tasks that are preempted need more stack
						c := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
						c.Env = append(os.Environ(), "BRAID_FIRST_STACK=1", "GODEBUG=adaptivestackstart=0,asyncpreemptoff=1")
						out, err = c.CombinedOutput()
					}
					require.NoError(t, err, string(out))
					require.Contains(t, string(out), "--- PASS: "+t.Name())
					return
				}
				wait, end := open()
				if bytes := stackOfEach(s, wait); bytes > 2600 {
					t.Errorf("a waiting task takes %d bytes of stack", bytes)
				}
				end()
			})
		}
	})
}

// stackOfEach starts a thousand tasks, which wait, and returns the growth of all stacks per task.
func stackOfEach(s suspend.Spawner, wait func()) int {
	const n = 1000
	stacks := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.StackInuse)
	}
	before := stacks()
	var begun atomic.Int64
	for range n {
		_ = s.Go(func() { begun.Add(1); wait() })
	}
	for begun.Load() < n {
		runtime.Gosched()
	}
	return (stacks() - before) / n
}

package workstealing_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/workstealing"
)

// A task ends with its thread locked. A later task of its worker holds the worker: the report must name the later task. The test
// runs in another process, because the goroutines of the first tasks never end.
func TestAStallBehindALockedThread(t *testing.T) {
	const variable = "BRAID_STRANDED"
	if os.Getenv(variable) != "" {
		reports := make(chan string, 100)
		p := workstealing.New(workstealing.Options{Workers: 1, StallAfter: 100 * time.Millisecond, OnStall: func(r []byte) { reports <- string(r) }})
		for range 3 {
			require.NoError(t, p.Go(func() { runtime.LockOSThread() }))
		}
		require.NoError(t, p.Go(func() { holdsTheWorker(make(chan struct{})) }))
		for r := range reports {
			fmt.Println(r)
			if strings.Contains(r, "holdsTheWorker") {
				os.Exit(0)
			}
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=30s")
	cmd.Env = append(os.Environ(), variable+"=1")
	out, err := cmd.CombinedOutput()
	if !slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) { // no lock is found here, and the runtime ends a process with such a task
		require.Contains(t, string(out), "OS thread locking must match")
		return
	}
	require.NoError(t, err, "no report names the task that waits natively:\n%s", out)
	require.NotContains(t, string(out), ".strand(", "a report names a task that has ended")
}

//go:noinline
func holdsTheWorker(stop chan struct{}) { <-stop }

package chance

import (
	"fmt"
	"hash/maphash"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCalm blocks 12 goroutines in system calls. The runtime's monitor then has the priority SCHED_IDLE, and takes the P from
// each of them. The threads that continue keep their own priority.
func TestCalm(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	require.NoError(t, Calm())
	var fds [2]int
	require.NoError(t, unix.Pipe(fds[:]))
	var blocked sync.WaitGroup
	for range 12 {
		blocked.Go(func() { _, _ = unix.Read(fds[0], make([]byte, 1)) })
	}
	for len(threadsIn(unix.SYS_READ)) < 12 {
		runtime.Gosched()
	}
	idle := 0
	all, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, e := range all {
		var id int
		_, err := fmt.Sscan(e.Name(), &id)
		require.NoError(t, err)
		a, err := unix.SchedGetAttr(id, 0)
		require.NoError(t, err)
		if a.Policy == unix.SCHED_IDLE {
			idle++
		}
	}
	require.Equal(t, 1, idle)
	_, err = unix.Write(fds[1], make([]byte, 12))
	require.NoError(t, err)
	blocked.Wait()
}

// TestKeys compares the order of a map in several processes. For the same seed it is the same only with BRAID_RANDOM.
func TestKeys(t *testing.T) {
	if os.Getenv("BRAID_KEYS") != "" {
		runtime.LockOSThread()
		opened(t).Seed(1)
		fmt.Println(maphash.Comparable(maphash.MakeSeed(), fmt.Sprint(ranges(table(100)))), ranges(table(100))[:5])
		os.Exit(7)
	}
	run := func(variable string) string {
		c := exec.Command(os.Args[0], "-test.run=^TestKeys$")
		c.Env = append(os.Environ(), "BRAID_KEYS=1", variable)
		out, _ := c.CombinedOutput()
		require.Equal(t, 7, c.ProcessState.ExitCode(), string(out))
		return string(out)
	}
	plain := run("BRAID_RANDOM=")
	require.NotEqual(t, plain, run("BRAID_RANDOM="))
	if slices.Contains([]string{"amd64", "arm64"}, runtime.GOARCH) {
		fixed := run("BRAID_RANDOM=1")
		require.NotEqual(t, plain, fixed)
		require.Equal(t, fixed, run("BRAID_RANDOM=1"))
	}
}

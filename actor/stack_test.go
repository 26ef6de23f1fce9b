// On other architectures, the frames are larger.

//go:build !race && (amd64 || arm64)

package actor_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// An actor whose body is a closure with a few frames waits on the initial stack of its goroutine.
func TestFirstStack(t *testing.T) {
	if os.Getenv("BRAID_FIRST_STACK") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestFirstStack$", "-test.v") // in a new process, because the runtime adapts the size of initial stacks
		c.Env = append(os.Environ(), "BRAID_FIRST_STACK=1", "GODEBUG=adaptivestackstart=0")
		out, err := c.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	stacks := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.StackInuse
	}
	schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
		const n = 1000
		sum := 0
		before := stacks()
		all := []actor.Ref[int]{}
		for i := range n {
			all = append(all, actor.Spawn(bg, s, func(ctx context.Context, self *actor.Self[int]) error {
				return receiving(ctx, self, func(m int) error { sum += m + i; return nil })
			}, actor.Options[int]{}))
			suspend.Yield()
		}
		require.Less(t, (stacks()-before)/n, uint64(2600), "bytes of stack for each")
		for _, r := range all {
			r.Stop()
		}
	})
}

package limited_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// Two tasks that have a place each, and one processor between them: each hand-over once took until the runtime preempted
// the task that yielded, and so thousands of Yields.
func TestYieldWithAPlaceToSpare(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, n := range []int{1, 2, 3, 8} {
		s := limited.New(n, limited.Options{})
		const handOvers, tasks = 200, 3
		var turn, yields atomic.Int64
		for side := range int64(tasks) {
			_ = s.Go(func() {
				for turn.Load() < handOvers {
					if turn.Load()%tasks == side {
						turn.Add(1)
						continue
					}
					yields.Add(1)
					suspend.Yield()
				}
			})
		}
		_ = s.Close()
		if all := yields.Load(); all > 100*handOvers { // a Yield or two for each, where nothing goes wrong
			t.Errorf("%d places: %d Yields for %d hand-overs", n, all, handOvers)
		}
	}
}

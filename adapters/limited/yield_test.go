package limited_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// Two tasks may run and share one processor. A Yield lets the other goroutine run at once. Otherwise each hand-over would take
// thousands of Yields, until the runtime preempts the task that yields.
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
		if all := yields.Load(); all > 100*handOvers { // in the good case, one or two Yields for each hand-over
			t.Errorf("%d places: %d Yields for %d hand-overs", n, all, handOvers)
		}
	}
}

package sharing

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// Counters that all workers share, and shards that all goroutines share. The count must notice each of them.
var mutants = []mutation.Mutant{
	{"a fork is counted", "adapters/workstealing/join.go", "	w.forks.push(f)\n", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.forks.push(f)\n", "TestSharedWrites/Join$", here},
	{"a turn is counted", "adapters/workstealing/worker.go", "	w.stalls.Begin()\n	why,", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.stalls.Begin()\n	why,", "TestSharedWrites/Yield$", here},
	{"a submission is counted", "adapters/workstealing/pool.go", "	if !p.live.Enter(part) {", "	if IS {\n		p.held.Add(0)\n	}\n	if !p.live.Enter(part) {", "TestSharedWrites/Go_from_outside", here},
	{"all goroutines have the same shard", "adapters/workstealing/shard.go", "		return &p.shards[part].injector, part\n", "		if IS {\n			part = 0\n		}\n		return &p.shards[part].injector, part\n", "TestSharedWrites/Go_from_outside", here},
	{"a wake-up is counted", "adapters/workstealing/worker.go", "	w.thread.Unpark()\n", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.thread.Unpark()\n", "TestSharedWrites/a_task_that_another_worker_steals$", here},
	{"a search is counted", "adapters/workstealing/worker.go", "	w.mode.Store(searching)\n", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.mode.Store(searching)\n", "TestSharedWrites/a_task_that_another_worker_steals$", here},
}

const here = "internal/testrig/sharing"

func TestMutants(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=explore")
	mutation.Run(t, "../../..", mutants)
}

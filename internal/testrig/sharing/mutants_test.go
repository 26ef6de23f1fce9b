package sharing

import (
	"testing"

	"github.com/braidgo/braid/internal/testrig/mutation"
)

// Counters that all workers share. The count must notice each of them.
var mutants = []mutation.Mutant{
	{"a fork is counted", "adapters/workstealing/join.go", "	w.forks.push(f)\n", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.forks.push(f)\n", "TestSharedWrites/Join$", here},
	{"a turn is counted", "adapters/workstealing/worker.go", "	w.stalls.Begin()\n	why,", "	if IS {\n		w.pool.held.Add(0)\n	}\n	w.stalls.Begin()\n	why,", "TestSharedWrites/Yield$", here},
}

const here = "internal/testrig/sharing"

func TestMutants(t *testing.T) {
	t.Setenv("GOFLAGS", "-tags=explore")
	mutation.Run(t, "../../..", mutants)
}

//go:build explore && mutants

package explore_test

import (
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// TestMutated is run by TestRealMutants.
func TestMutated(t *testing.T) {
	all := map[string]program{}
	for _, p := range programs {
		all[p.name] = p
	}
	bounded := map[string]bool{}
	for _, p := range boundedPrograms {
		all[p.name] = p
		bounded[p.name] = true
	}
	spurious := with(reduced, 0)
	spurious.Spurious = 1
	searches := []explore.Config{with(reduced, 0), with(reduced, 1), with(reduced, 2), with(fine(2), 0), with(fine(2), 1), with(fine(2), 2), spurious}
	// finds looks for the mistake in that many runs of each program and search, or three times as many where they are bounded.
	finds := func(mutant, named string, runs int) bool {
		for _, name := range strings.Split(named, ";") {
			p, ok := all[name]
			if !ok {
				t.Errorf("%s: there is no program %s", mutant, name)
			}
			for _, c := range searches {
				if !ok || c.Reduced && bounded[name] {
					continue
				}
				if c.Executions = runs; !c.Reduced {
					c.Executions *= 3
				}
				if r := explore.Run(c, p.program); r.Failure != nil {
					reason, _, _ := strings.Cut(r.Failure.Reason, "\n")
					t.Logf("%s: %s, run %d: %s, replay %s", mutant, name, r.Executions, reason, r.Failure.Replay)
					return true
				}
			}
		}
		return false
	}
	for _, m := range realMutants {
		atomicx.Mutate(m[0])
		if !finds(m[0], m[4], 1_000) && !finds(m[0], m[4], 20_000) {
			t.Errorf("%s: not found", m[0])
		}
	}
	atomicx.Mutate("")
}

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
	for _, m := range realMutants {
		mutant, named := m[0], m[4]
		atomicx.Mutate(mutant)
		spurious := with(reduced, 0)
		spurious.Spurious = 1
		found := false
		for _, name := range strings.Split(named, ";") {
			p, ok := all[name]
			if !ok {
				t.Errorf("%s: there is no program %s", mutant, name)
				continue
			}
			for _, c := range []explore.Config{with(reduced, 0), with(reduced, 1), with(reduced, 2), with(fine(1), 1), with(fine(2), 2), spurious} {
				if found || c.Reduced && bounded[name] {
					continue
				}
				if c.Executions = 20_000; !c.Reduced {
					c.Executions = 40_000
				}
				if r := explore.Run(c, p.program); r.Failure != nil {
					reason, _, _ := strings.Cut(r.Failure.Reason, "\n")
					t.Logf("%s: %s, run %d: %s, replay %s", mutant, name, r.Executions, reason, r.Failure.Replay)
					found = true
				}
			}
		}
		if !found {
			t.Errorf("%s: not found", mutant)
		}
	}
	atomicx.Mutate("")
}

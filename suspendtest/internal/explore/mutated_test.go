//go:build explore && mutants

package explore_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// TestRealMutants runs TestMutated. It begins with the mutant whose index is in the environment variable BRAID_FROM. With
// BRAID_ONLY, it runs only the mutants whose names match this regular expression.
//
// A run that fails can leave a lock of a package variable held, such as the guard of all transactions. Every later program that
// needs the lock would fail at once, with or without a mistake. So each mutant's programs must first pass without the mutant. If
// they do not, TestMutated ends, and names the mutant with which another process must go on.
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
	// finds searches for the mistake, with the given number of runs for each program and search, or three times as many for
	// bounded searches.
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
	passes := func(named string) bool {
		for _, name := range strings.Split(named, ";") {
			c := with(reduced, 0)
			if bounded[name] {
				c = with(fine(2), 0)
			}
			c.Executions = 10
			if p, ok := all[name]; ok && explore.Run(c, p.program).Failure != nil {
				return false
			}
		}
		return true
	}
	from, _ := strconv.Atoi(os.Getenv("BRAID_FROM"))
	only := regexp.MustCompile(os.Getenv("BRAID_ONLY"))
	ran := false
	for i, m := range realMutants[from:] {
		if !only.MatchString(m[0]) {
			continue
		}
		if !passes(m[4]) {
			if !ran {
				t.Fatalf("%s: a program fails without the mutant", m[4])
			}
			t.Logf("%s%d", goOn, from+i)
			break
		}
		ran = true
		atomicx.Mutate(m[0])
		if !finds(m[0], m[4], 1_000) && !finds(m[0], m[4], 20_000) {
			t.Errorf("%s: not found", m[0])
		}
		atomicx.Mutate("")
	}
}

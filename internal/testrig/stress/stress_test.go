package stress_test

import (
	"slices"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/stress"
)

func TestFor(t *testing.T) {
	t.Setenv(stress.Variable, "7s")
	if d := stress.For(t); d != 7*time.Second {
		t.Errorf("%v", d)
	}
	t.Setenv(stress.Variable, "")
	if d := stress.For(t); d > time.Second {
		t.Errorf("%v", d)
	}
}

// A reporter records the failures.
type reporter struct {
	testing.TB
	failed int
}

func (r *reporter) Errorf(string, ...any) { r.failed++ }

func TestRoundsGoOnUntilAllIsCovered(t *testing.T) {
	t.Setenv(stress.Variable, "1ns")
	n, seen := 0, stress.Of("often", "late")
	r := &reporter{TB: t}
	stress.Rounds(r, seen, func() {
		if n++; n == 20 {
			seen.Add("late")
		}
		seen.Add("often")
		seen.Add("unasked")
	})
	if n != 20 || r.failed > 0 || seen.Seen()["often"] != 20 || len(seen.Missing()) > 0 {
		t.Errorf("%d rounds, %d failures, %v", n, r.failed, seen.Seen())
	}
	if missing := stress.Of("never").Missing(); !slices.Equal(missing, []string{"never"}) {
		t.Errorf("%v", missing)
	}
}

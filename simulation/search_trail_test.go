package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rare state has one trail of each seed, which ends there.
func TestTrails(t *testing.T) {
	var s search
	for range 3 {
		s.ran(plan{1, []fork{{2, 7, true}, {9, 8, true}}}, []milestone{{"x", 5}})
	}
	s.ran(plan{seed: 2}, []milestone{{"x", 6}})
	require.Equal(t, []trail{{plan{1, []fork{{2, 7, true}}}, 5}, {plan{seed: 2}, 6}}, trimmed(s.rarities[0].trail))
	require.Equal(t, 4, s.rarities[0].tries)
}

func trimmed(all []trail) []trail {
	for i := range all {
		if len(all[i].forks) == 0 {
			all[i].forks = nil
		}
	}
	return all
}

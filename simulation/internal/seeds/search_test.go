package seeds

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rare state has one trail for each seed, which ends there.
func TestTrails(t *testing.T) {
	var s search
	for range 3 {
		s.ran(Run{Seed: 1, Forks: []Fork{{2, 7, true}, {9, 8, true}}}, []Milestone{{"x", 5}})
	}
	s.ran(Run{Seed: 2}, []Milestone{{"x", 6}})
	require.Equal(t, []trail{{Run{Seed: 1, Forks: []Fork{{2, 7, true}}}, 5}, {Run{Seed: 2}, 6}}, trimmed(s.rarities[0].trail))
	require.Equal(t, 4, s.rarities[0].tries)
}

func trimmed(all []trail) []trail {
	for i := range all {
		if len(all[i].Forks) == 0 {
			all[i].Forks = nil
		}
	}
	return all
}

package gate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNumbers checks the example of a Resize in the comment of the type change.
func TestNumbers(t *testing.T) {
	type row struct{ taken, lost, owed, permits, held, free uint64 }
	g := new(Gate)
	now := func() row {
		taken, c := g.word.Load()/one, change{lost: Max - 10}
		if g.changed != nil {
			c = *g.changed
		}
		return row{taken, c.lost, c.owed, g.sizeLocked(10), taken - c.lost, Max - taken}
	}
	g.Limit(10)
	require.True(t, g.TryAcquire(7, 10))
	require.Equal(t, row{Max - 3, Max - 10, 0, 10, 7, 3}, now())
	g.Resize(10, 4)
	require.Equal(t, row{Max, Max - 7, 3, 4, 7, 0}, now())
	require.False(t, g.Release(2, Max, Max), "the seven are Max-3 to a caller")
	require.True(t, g.Release(2, Max-3, Max-3))
	require.Equal(t, row{Max, Max - 5, 1, 4, 5, 0}, now())
	require.True(t, g.Release(2, Max-5, Max-5))
	require.Equal(t, row{Max - 1, Max - 4, 0, 4, 3, 1}, now())
	g.Resize(10, 10)
	require.Equal(t, row{Max - 7, Max - 10, 0, 10, 3, 7}, now())
}

package mutation

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShare divides mutants: each is in exactly one of n shares.
func TestShare(t *testing.T) {
	var all []Mutant
	for i := range 10 {
		all = append(all, Mutant{strconv.Itoa(i)})
	}
	for n := 1; n <= 12; n++ {
		seen := map[string]int{}
		for k := range n {
			some, err := share(all, strconv.Itoa(k+5*n)+"/"+strconv.Itoa(n)) // any number will do
			require.NoError(t, err)
			for _, m := range some {
				seen[m.name()]++
			}
		}
		require.Len(t, seen, len(all))
		for _, times := range seen {
			require.Equal(t, 1, times)
		}
	}
	some, err := share(all, "1")
	require.NoError(t, err)
	require.Equal(t, all, some)
	some, err = share(all, "")
	require.NoError(t, err)
	require.Empty(t, some)
	for _, wrong := range []string{"2", "1/0", "-1/2", "1/2 ", "x", "1/2/3"} {
		_, err := share(all, wrong)
		require.ErrorContains(t, err, "k/n", wrong)
	}
}

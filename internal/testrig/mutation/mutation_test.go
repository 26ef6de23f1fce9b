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

// TestWithoutComments takes comments out of a file, and leaves strings and directives as they are.
func TestWithoutComments(t *testing.T) {
	const src = `//go:build linux

// Package p has comments.
package p

//go:linkname f g
func f() string { // a tail
	// a line
	return "// no comment" /* inside */ + "x"
}
`
	const want = `//go:build linux

package p

//go:linkname f g
func f() string {
	return "// no comment" + "x"
}
`
	require.Equal(t, want, withoutComments(src))
}

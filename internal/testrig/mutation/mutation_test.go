package mutation

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShare checks that each mutant is in exactly one of n shares.
func TestShare(t *testing.T) {
	var all []Mutant
	for i := range 10 {
		all = append(all, Mutant{strconv.Itoa(i)})
	}
	for n := 1; n <= 12; n++ {
		seen := map[string]int{}
		for k := range n {
			some, err := share(all, strconv.Itoa(k+5*n)+"/"+strconv.Itoa(n)) // the number of a share may be any integer
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

// TestWithoutComments removes the comments of a file. Strings and directives must stay.
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

// TestRenamed finds the text of mutants whose local variables were renamed, and no other text.
func TestRenamed(t *testing.T) {
	const src = `package p

var level = 1

func f(kept []item, at int) int {
	if at >= level {
		kept = kept[1:]
		return kept[0].at
	}
	return level
}

func g(from, to int) int {
	if to >= level {
		return from
	}
	for from < to {
		from++
	}
	return to
}
`
	for name, c := range map[string]struct{ text, by, wantText, wantBy string }{
		"renamed":                {"	rest = rest[1:]\n		return rest[0].at", "	rest = rest[IS:]\n		return x.rest[0].at", "	kept = kept[1:]\n		return kept[0].at", "	kept = kept[IS:]\n		return x.rest[0].at"},
		"with brackets":          {"if ⟦n >= level⟧ {\n		return from", "n > level", "if ⟦to >= level⟧ {\n		return from", "to > level"},
		"two places":             {"if n >= level {", "if IS {", "", ""},
		"all names are local":    {"for a < b {", "for {", "", ""},
		"not local":              {"if at >= depth {\n		kept", "if IS {\n		kept", "", ""},
		"a field":                {"return kept[0].to", "return 0", "", ""},
		"two names for one":      {"	a = b[1:]", "	a = b", "", ""},
		"one name for two":       {"a >= level {\n		return a\n", "", "", ""},
		"the name is still used": {"kept >= level {\n		return from", "", "", ""},
		"other code":             {"for a > level {", "for {", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := Mutant{"a mistake", "p.go", c.text, c.by, "Test", ""}
			want := m
			if c.wantText != "" {
				want[2], want[3] = c.wantText, c.wantBy
			}
			require.Equal(t, want, renamed(src, m))
		})
	}
}

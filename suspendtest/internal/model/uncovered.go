package model

import (
	"fmt"
	"strings"
)

// Uncovered returns the results that operations of spec can return but that are missing from seen. For Selects, it returns the cases that
// can win but have not won.
func Uncovered(spec Spec, seen map[string]int) (missing []string) {
	sys := spec.New(func(int) int { return 0 })
	for _, part := range sys.Parts {
		for _, k := range part.Kinds {
			name := fmt.Sprintf("%s.%s: ", part.Name, k.Name)
			var want []string
			if !sys.Selects || len(sys.Parts) == 1 {
				for r := range strings.SplitSeq(k.Seen, ",") {
					want = append(want, name+r)
				}
				if !k.Try {
					want = append(want, name+"cancelled")
				}
			}
			if sys.Selects && k.Op != nil {
				want = append(want, "Select: "+name+"won")
			}
			for _, what := range want {
				if seen[what] == 0 && what != name {
					missing = append(missing, what)
				}
			}
		}
	}
	return missing
}

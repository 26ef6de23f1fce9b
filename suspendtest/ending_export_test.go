package suspendtest

import (
	"testing"
	"time"
)

// EndingNames returns the names of the checks of Ending.
func EndingNames() (names []string) {
	for _, c := range endingChecks {
		names = append(names, c.name)
	}
	return names
}

// CheckEnding runs one check of a scheduler whose executor may end first.
func CheckEnding(tb testing.TB, name string, deadline time.Duration, s SuspendFunc, open OpenEnding, opts ...Option) {
	o := gather(opts)
	o.deadline = deadline
	for _, c := range endingChecks {
		if c.name == name {
			c.onEnding(tb, &env{opts: o, suspend: s}, open)
			return
		}
	}
	tb.Fatalf("there is no check %s", name)
}

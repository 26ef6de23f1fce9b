// Package stress sets the duration of tests under load, and counts their outcomes.
package stress

import (
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// Variable is the environment variable that says for how long: BRAID_STRESS=30s. Each test that calls For runs so long.
const Variable = "BRAID_STRESS"

// For is how long a test is to run: what Variable says, or else a moment.
func For(t testing.TB) time.Duration {
	t.Helper()
	if s := os.Getenv(Variable); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
		return d
	}
	if testing.Short() {
		return 100 * time.Millisecond
	}
	return 300 * time.Millisecond
}

// Rounds calls round again and again, and returns when For is over, but not before the first time and not before
// outcomes is covered, for which it takes ten seconds, or twice as long. If it is not by then, the test fails.
func Rounds(t testing.TB, outcomes *Outcomes, round func()) {
	t.Helper()
	d, begun, n := For(t), time.Now(), 0
	for n == 0 || time.Since(begun) < d || len(outcomes.Missing()) > 0 && time.Since(begun) < max(10*time.Second, 2*d) {
		round()
		n++
	}
	t.Logf("%d rounds: %v", n, outcomes.Seen())
	for _, what := range outcomes.Missing() {
		t.Errorf("uncovered: %s", what)
	}
}

// Outcomes counts the outcomes that a test has seen, and has the list of all outcomes that must be seen.
type Outcomes struct {
	mu   sync.Mutex
	want []string
	seen map[string]int
}

// Of returns Outcomes that must all be seen.
func Of(want ...string) *Outcomes { return &Outcomes{want: want, seen: map[string]int{}} }

// Add counts an outcome, which need not be on the list.
func (o *Outcomes) Add(what string) {
	o.mu.Lock()
	o.seen[what]++
	o.mu.Unlock()
}

// Seen returns how often each outcome was seen.
func (o *Outcomes) Seen() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.seen)
}

// Missing returns the outcomes of the list that were never seen.
func (o *Outcomes) Missing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.want), func(s string) bool { return o.seen[s] > 0 })
}

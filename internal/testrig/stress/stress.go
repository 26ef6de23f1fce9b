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

// Variable is the environment variable that sets the duration of each test that calls For, such as BRAID_STRESS=30s.
const Variable = "BRAID_STRESS"

// For returns how long a test must run. If Variable is not set, a test runs for 300 ms, or for 100 ms with -short.
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

// Rounds calls the function round repeatedly, at least once and for at least the duration d that For returns. It continues until all wanted
// outcomes have been seen, but for at most ten seconds or 2*d, whichever is longer. The test fails if an outcome is then still missing.
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

// Outcomes counts the outcomes that a test has seen, and holds the list of outcomes that the test must see.
type Outcomes struct {
	mu   sync.Mutex
	want []string
	seen map[string]int
}

// Of returns an Outcomes that requires a test to see all outcomes in want.
func Of(want ...string) *Outcomes { return &Outcomes{want: want, seen: map[string]int{}} }

// Add counts an outcome, which need not be in the list.
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

// Missing returns the outcomes in the list that have not been seen.
func (o *Outcomes) Missing() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(o.want), func(s string) bool { return o.seen[s] > 0 })
}

//go:build browser

package census_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/browser"
	"github.com/braidgo/braid/suspend/census"
)

// TestPage opens the page in a browser, while two tasks of two schedulers have locked two mutexes crosswise, and reads its text.
func TestPage(t *testing.T) {
	on(t)
	defer crosswise()()
	eventually(t, func(s census.Snapshot) bool { return len(s.Deadlocks) == 1 })
	dom := browser.Shown(t, serve(t).URL+"/debug/braid/")
	require.Contains(t, dom, `<div class="deadlock">`)
	require.Contains(t, dom, "<h2>deadlock: 2 tasks wait for each other; a context may end it</h2>")
	for _, line := range holding {
		require.Regexp(t, line, dom)
	}
	require.Regexp(t, `<details><summary>stack</summary><pre>`, dom)
}

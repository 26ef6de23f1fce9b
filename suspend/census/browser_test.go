//go:build browser

package census_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/suspend/census"
)

// TestPage opens the page in a browser, while two tasks of two schedulers have locked two mutexes crosswise, and reads its text.
func TestPage(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if at, err := exec.LookPath(name); err == nil {
			browser = at
			break
		}
	}
	require.NotEmpty(t, browser, "there is no chromium on this machine")
	on(t)
	defer crosswise()()
	eventually(t, func(s census.Snapshot) bool { return len(s.Deadlocks) == 1 })
	limit, cancel := context.WithTimeout(bg, 60*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "census")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(limit, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+dir,
		"--virtual-time-budget=5000", "--dump-dom", serve(t).URL+"/debug/braid/")
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	dom := string(out)
	require.Contains(t, dom, `<div class="deadlock">`)
	require.Contains(t, dom, "<h2>deadlock: 2 tasks wait for each other; a context may end it</h2>")
	for _, line := range holding {
		require.Regexp(t, line, dom)
	}
	require.Regexp(t, `<details><summary>stack</summary><pre>`, dom)
}

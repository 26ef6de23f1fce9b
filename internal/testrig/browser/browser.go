// Package browser loads pages in a headless browser, for tests with the build tag browser.
package browser

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Shown returns the document at url after its scripts have run for five seconds of virtual time. If Chromium is not installed, the test
// fails instead of being skipped.
func Shown(t *testing.T, url string) (dom string) {
	at := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			at = found
			break
		}
	}
	require.NotEmpty(t, at, "there is no chromium on this machine")
	dir, err := os.MkdirTemp("", "browser")
	require.NoError(t, err)
	defer os.RemoveAll(dir) // the browser may still use files, so errors are ignored
	limit, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(limit, at, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+dir,
		"--virtual-time-budget=5000", "--dump-dom", url).Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

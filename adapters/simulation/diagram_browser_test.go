//go:build browser

package simulation_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDiagramInABrowser opens a diagram in a browser, and reads what it shows.
func TestDiagramInABrowser(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if at, err := exec.LookPath(name); err == nil {
			browser = at
			break
		}
	}
	require.NotEmpty(t, browser, "there is no chromium on this machine")
	limit, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "diagram")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	out, err := exec.CommandContext(limit, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+dir,
		"--dump-dom", "file://"+draw(t)).Output()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "parsererror", "it is XML")
	require.Equal(t, 4, strings.Count(string(out), `<line class="message"`))
	require.Contains(t, string(out), "<title>a is paused</title>")
}

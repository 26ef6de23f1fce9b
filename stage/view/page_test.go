//go:build browser

package view_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/stage/view"
)

// TestPage opens the page in a browser, while a stage is overloaded, and reads its text.
func TestPage(t *testing.T) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if at, err := exec.LookPath(name); err == nil {
			browser = at
			break
		}
	}
	require.NotEmpty(t, browser, "there is no chromium on this machine")
	stages, offer, closeAll := overloaded(t)
	server := httptest.NewServer(view.Handler(stages...))
	defer server.Close()
	ctx, stop := context.WithCancel(bg)
	var all sync.WaitGroup
	for range 8 { // on a machine that is starved as well, the disk gets more than it can do
		all.Go(func() {
			for ctx.Err() == nil {
				offer(10)
			}
		})
	}
	limit, cancel := context.WithTimeout(bg, 60*time.Second)
	defer cancel()
	dir, err := os.MkdirTemp("", "view")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(limit, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+dir,
		"--virtual-time-budget=5000", "--dump-dom", server.URL)
	out, err := cmd.Output()
	stop()
	all.Wait()
	closeAll()
	require.NoError(t, err, "%s", out)
	dom := string(out)
	require.Contains(t, dom, "<td>disk</td>")
	require.Contains(t, dom, "<td>&lt;fast&gt;</td>", "names are text")
	require.Regexp(t, `Bottleneck: disk: A×L = \d+, W = 4: S can be \d+/s at most`, dom)
	require.Contains(t, dom, "<polyline")
	require.Regexp(t, `<p id="error"></p>`, dom)
}

//go:build browser

package view_test

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/browser"
	"github.com/braidgo/braid/stage/view"
)

// TestPage opens the page in a browser, while a stage is overloaded, and reads its text.
func TestPage(t *testing.T) {
	stages, offer, closeAll := overloaded(t)
	server := httptest.NewServer(view.Handler(stages...))
	defer server.Close()
	ctx, stop := context.WithCancel(bg)
	var all sync.WaitGroup
	for range 8 { // repeats: on a starved machine, the disk is overloaded, too
		all.Go(func() {
			for ctx.Err() == nil {
				offer(10)
			}
		})
	}
	dom := browser.Shown(t, server.URL)
	stop()
	all.Wait()
	closeAll()
	require.Contains(t, dom, "<td>disk</td>")
	require.Contains(t, dom, "<td>&lt;fast&gt;</td>", "names are text")
	require.Regexp(t, `Bottleneck: disk: A×L = \d+, W = 4: S can be \d+/s at most`, dom)
	require.Contains(t, dom, "<polyline")
	require.Regexp(t, `<p id="error"></p>`, dom)
}

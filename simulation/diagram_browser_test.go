//go:build browser

package simulation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/browser"
)

// TestDiagramInABrowser opens a diagram in a browser, and reads its texts.
func TestDiagramInABrowser(t *testing.T) {
	dom := browser.Shown(t, "file://"+draw(t))
	require.NotContains(t, dom, "parsererror", "it is XML")
	require.Equal(t, 4, strings.Count(dom, `<line class="message"`))
	require.Contains(t, dom, "<title>a is paused</title>")
}

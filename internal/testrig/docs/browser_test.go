//go:build browser

package docs

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/testrig/browser"
	"github.com/stretchr/testify/require"
)

var picture = regexp.MustCompile(`!\[[^\]]*\]\((docs/[a-z]+\.svg)\)`)

// TestBrowser shows the code and the pictures of README.md in pages as narrow as a phone and as wide as GitHub's, with GitHub's fonts and
// margins. No line of the code may need scrolling, and no text may lie outside its picture.
func TestBrowser(t *testing.T) {
	text := read(t, "README.md")
	var body strings.Builder
	blocks, pictures := block.FindAllStringSubmatch(text, -1), picture.FindAllStringSubmatch(text, -1)
	require.Len(t, blocks, 2)
	require.Len(t, pictures, 2)
	for _, m := range blocks {
		body.WriteString("<pre>" + html.EscapeString(m[1]) + "</pre>")
	}
	for _, m := range pictures {
		body.WriteString(read(t, m[1]))
	}
	for _, width := range []int{390, 1012} {
		page := filepath.Join(t.TempDir(), "readme.html")
		require.NoError(t, os.WriteFile(page, []byte(`<!doctype html><meta charset="utf-8"><style>
pre{font:13.6px/1.45 ui-monospace,Menlo,Consolas,"Liberation Mono",monospace;padding:16px;overflow:auto}</style>
<div style="width:`+strconv.Itoa(width-32)+`px">`+body.String()+`</div><p id="cut"></p><script>
let cut = [], seen = 0
for (const e of document.querySelectorAll("pre")) { seen++; if (e.scrollWidth > e.clientWidth) cut.push(e.textContent) }
for (const e of document.querySelectorAll("svg > text, svg > g > text")) {
	const box = e.getBBox(), all = e.ownerSVGElement.viewBox.baseVal
	seen++
	if (box.x < 0 || box.y < 0 || box.x + box.width > all.width || box.y + box.height > all.height) cut.push(e.textContent)
}
document.getElementById("cut").textContent = (seen > 30) + ": " + cut.join("; ")
</script>`), 0o600))
		require.Contains(t, browser.Shown(t, "file://"+page), `<p id="cut">true: </p>`, "at %d pixels", width)
	}
}

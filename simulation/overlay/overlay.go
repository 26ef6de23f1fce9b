// Overlay prints the path of a file for the go command's -overlay flag, for a runtime in which a seed decides more. With this flag, the go
// command builds a runtime that makes simulations more deterministic, and in which BRAID_ORDER decides the order of the goroutines of a
// test. See simulation/hunt.
//
//	go test -overlay="$(go run github.com/braidgo/braid/simulation/overlay)" ./...
//
// Overlay copies files of the GOROOT that the go command uses in the current directory, and edits the copies. GOROOT itself does not change.
// Overlay fails if a line that it edits does not occur as often as expected, for example because a newer release of Go has changed the line.
//
// The go command does not replace files of a release that it has downloaded (GOTOOLCHAIN). Overlay then copies the release, and fails with the
// command that selects the copy.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/braidgo/braid/simulation/internal/edited"
)

func main() {
	g, err := edited.Overlay("")
	if err == nil && g.Copied {
		err = fmt.Errorf("the go command has downloaded %s, where it replaces no file. A copy of this release is in %s. To use the copy: export GOTOOLCHAIN=local PATH=%s:$PATH",
			g.Version, filepath.Dir(filepath.Dir(g.Command)), filepath.Dir(g.Command))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
	fmt.Println(g.List)
}

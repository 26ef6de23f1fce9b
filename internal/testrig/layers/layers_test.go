// Package layers_test holds the packages to their layers: which folder may import which. It sees imports, linknames, and
// variables of a package that another package sets, through which a lower layer could call a higher one unnoticed.
package layers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	module = "github.com/braidgo/braid"
)

// A layer is a group of folders. Its code may import the layers before it, and the folders in also. A folder stands for all
// folders below it, unless a longer name in the table does.
type layer struct {
	folders []string
	also    []string // folders of the same layer
}

var layers = []layer{
	{folders: []string{"suspend/sched", "internal/atomicx", "internal/gid", "internal/prefetch", "internal/patience", "internal/outcome", "internal/dlist", "internal/again", "internal/splitmix", "internal/lazily", "internal/preempt", "actor/internal/carrier", "internal/shrinking", "simulation/disk"}},
	{folders: []string{"internal/ledger", "internal/threadlock"}},
	{folders: []string{"internal/labels", "internal/cancelctx", "simulation/internal/chance", "simulation/internal/draws", "simulation/internal/saturate", "simulation/internal/edited"}},
	{folders: []string{"suspend"}},
	{folders: []string{"simulation/internal/seeds", "simulation/internal/network", "simulation/internal/storage", "internal/gate", "internal/watching", "internal/abandoned", "suspend/census"}},
	{folders: []string{"cancel", "mutex", "semaphore", "cond", "chanx", "mvar", "promise", "lazy", "latch", "watch", "broadcast", "rate"}},
	{folders: []string{"internal/producer", "simulation/internal/volume"}},
	{folders: []string{"internal/coro"}},
	{folders: []string{"adapters/internal"}, also: []string{"adapters/internal"}},
	{folders: []string{"scope", "stm", "internal/idle", "keyed", "respool"}},
	{folders: []string{"adapters", "simulation"}},
	{folders: []string{"simulation/nemesis", "simulation/overlay", "simulation/hunt", "adapters/netstack"}},
	{folders: []string{"fetch", "stage", "actor", "stm/collections"}},
	{folders: []string{"fetch/fetchtest", "stage/view", "stage/prom", "stage/otel", "stage/jetstream", "actor/natsactor"}},
	{folders: []string{"suspendtest"}, also: []string{"suspendtest"}},
	{folders: []string{"internal/testrig"}},
	{folders: []string{"examples", "docs", "simulation/services", "simulation/stocktest", "adapters/eventloop/stocktest"}},
	{folders: []string{"bench"}},
	{folders: []string{"braidvet"}, also: []string{"braidvet"}},
}

// withUnsafe lists the files that may import unsafe: the lowest layers, system calls, and the test rig. uring_linux.go shares
// memory with the kernel, for io_uring: with 64 reads of a disk in flight, it does twice as many as goroutines do.
var withUnsafe = []string{
	"internal/atomicx/traced.go", "simulation/internal/chance/chance.go", "simulation/internal/chance/hooks.go", "internal/labels/labels.go", "internal/prefetch/prefetch.go", "internal/threadlock/threadlock.go",
	"adapters/eventloop/sys_linux.go", "adapters/eventloop/race_linux.go", "adapters/eventloop/poller_linux.go", "adapters/eventloop/uring_linux.go", "bench/files.go",
	"suspendtest/internal/explore",
}

// onlyTests lists packages that production code must not link, because they set the random state of the runtime. Only these folders
// may import them outside tests.
var onlyTests = map[string][]string{
	"simulation/internal/chance": {"simulation"},
	"simulation/internal/seeds":  {"simulation"},
	"simulation":                 {"simulation", "bench"},
}

// place returns the index of the layer of a folder, -1 if it has none.
func place(folder string) (at int) {
	at, best := -1, ""
	for i, l := range layers {
		for _, f := range l.folders {
			if within(folder, f) && len(f) > len(best) {
				at, best = i, f
			}
		}
	}
	return at
}

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

func mayImport(from, to string) bool {
	i, j := place(from), place(to)
	return j < i || from == to || slices.ContainsFunc(layers[i].also, func(f string) bool { return within(to, f) })
}

// findings returns everything in a file that the layers do not allow.
func findings(t *testing.T, file, text string) (found []string) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.ParseComments)
	require.NoError(t, err)
	folder := path.Dir(file)
	if place(folder) < 0 {
		return []string{"the folder has no layer"}
	}
	names := map[string]string{} // the module's packages that the file imports
	for _, spec := range f.Imports {
		what := strings.Trim(spec.Path.Value, `"`)
		to, ours := strings.CutPrefix(what, module+"/")
		switch {
		case what == "unsafe" && !slices.ContainsFunc(withUnsafe, func(f string) bool { return within(file, f) }):
			found = append(found, "imports unsafe")
		case ours && !mayImport(folder, to), onlyTests[to] != nil && !slices.ContainsFunc(onlyTests[to], func(f string) bool { return within(folder, f) }):
			found = append(found, "imports "+to)
		}
		if ours {
			names[path.Base(to)] = to
			if spec.Name != nil {
				names[spec.Name.Name] = to
			}
		}
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") && file != "internal/labels/labels.go" && file != "simulation/internal/chance/chance.go" && file != "simulation/internal/chance/hooks.go" {
				found = append(found, "has a linkname")
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if set, ok := n.(*ast.AssignStmt); ok {
			for _, left := range set.Lhs {
				sel, ok := left.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Obj == nil && names[x.Name] != "" {
					found = append(found, "sets a variable of "+names[x.Name])
				}
			}
		}
		return true
	})
	return found
}

func TestLayers(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, at)
		require.NoError(t, err)
		file := filepath.ToSlash(rel)
		if d.IsDir() {
			if file != "." && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || path.Dir(file) == "." {
			return nil
		}
		files++
		for _, f := range findings(t, file, read(t, at)) {
			t.Errorf("%s: %s", file, f)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, files, 200)
}

// TestLayersFinds checks that each forbidden thing is found.
func TestLayersFinds(t *testing.T) {
	for text, want := range map[string]string{
		`import "github.com/braidgo/braid/adapters/fifo"; var _ = fifo.New`:                                             "imports adapters/fifo",
		`import "unsafe"; var _ unsafe.Pointer`:                                                                         "imports unsafe",
		`import "github.com/braidgo/braid/internal/cancelctx"; func init() { cancelctx.Hook = nil }`:                    "sets a variable of internal/cancelctx",
		`import other "github.com/braidgo/braid/internal/cancelctx"; func init() { other.Hook = func() { println() } }`: "sets a variable of internal/cancelctx",
		"import _ \"context\"\n\n//go:linkname x runtime.x\nfunc x()":                                                   "has a linkname",
		`import "github.com/braidgo/braid/internal/gid"; var _ = gid.Get`:                                               "",
	} {
		found := findings(t, "suspend/x.go", "package suspend\n"+text)
		require.Equal(t, want, strings.Join(found, "; "), text)
	}
	require.Equal(t, []string{"the folder has no layer"}, findings(t, "new/x.go", "package x"))
	require.Equal(t, []string{"imports simulation"}, findings(t, "stage/x.go", `package stage; import _ "github.com/braidgo/braid/simulation"`))
	require.Equal(t, []string{"imports simulation/internal/chance"}, findings(t, "stage/x.go", `package stage; import _ "github.com/braidgo/braid/simulation/internal/chance"`))
}

func read(t *testing.T, at string) string {
	b, err := os.ReadFile(at)
	require.NoError(t, err)
	return string(b)
}

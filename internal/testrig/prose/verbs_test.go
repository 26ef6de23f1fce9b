package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain lists the names that mean the same in every package, so that any number of packages may use them.
var plain = strings.Fields(`abandon add check close do ended expire fail find finish grow init main now open pass perform put read remove result
	resume run sleep start stop submit task wait wake`)

// TestVerbs fails if more than four packages define an unexported function or method of one name. A verb such as end or take
// would mean something else in each of them, so the name must say what is ended or taken.
func TestVerbs(t *testing.T) {
	const root = "../../.."
	folders := map[string]map[string]bool{} // the folders that define each name
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if slices.Contains([]string{"bench", "docs", "examples"}, name) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && !fn.Name.IsExported() {
				if folders[fn.Name.Name] == nil {
					folders[fn.Name.Name] = map[string]bool{}
				}
				folders[fn.Name.Name][filepath.Dir(name)] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, folders["wait"])
	for name, in := range folders {
		if len(in) > 4 && !slices.Contains(plain, name) {
			t.Errorf("%d packages define a function %s: say what it acts on", len(in), name)
		}
	}
}

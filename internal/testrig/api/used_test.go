package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unused lists the exported names that nothing in the repository uses, each with the reason for keeping it. The list should become
// shorter.
var unused = map[string]string{
	"actor/natsactor: Server.Lost":         "what an operator reads",
	"adapters/netstack: Conn.ReadContext":  "Read with a context, as Serve does",
	"adapters/netstack: Conn.ReadableOp":   "of a Conn, like the same method of an eventloop",
	"adapters/netstack: Conn.WriteContext": "Write with a context, as Serve does",
	"adapters/netstack: Listener.Accept":   "as of a net.Listener",
	"adapters/random: Scheduler.Seed":      "for tests of users",
	"cancel: WithDeadline":                 "the form of package context",
	"stage/otel: Register":                 "the way into the module",
	"stage/prom: NewCollector":             "the way into the module",
	"suspendtest: Kill":                    "the check of a Kill for schedulers of users",
	"suspendtest: Ending":                  "an option for tests of users",
}

// A code holds the names that TestUsed finds in the repository, by folder.
type code struct {
	exports   map[string][]string        // by folder: "Name", or "Type.Method"
	selected  map[string]map[string]bool // by folder: names selected from the package in files that import it
	anywhere  map[string]map[string]bool // by folder: names selected from any value in these files
	signed    map[string]map[string]bool // by folder: the types in the signatures of its exported functions and fields
	shown     map[string]map[string]bool // by package name: the names that code in the documents selects from it
	contracts map[string]bool            // the methods of all interfaces
}

// TestUsed fails for an exported name that no other package, no example, no row of bench and no Example of its own package uses. A
// method counts as used if a file that imports its package selects the name from anything, or if an interface has it. Errors are for
// callers that the repository does not have, and a type is used by the functions that return or take it.
func TestUsed(t *testing.T) {
	c := code{map[string][]string{}, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}}
	for _, m := range []string{"Error", "Unwrap", "Is", "As", "String", "GoString", "Format", "LocalAddr", "RemoteAddr", "SyscallConn", "SetDeadline", "SetReadDeadline", "SetWriteDeadline", "SetKeepAlive", "SetKeepAlivePeriod", "SetNoDelay", "Name", "ReadAt", "Size", "Truncate", "Rename"} {
		c.contracts[m] = true // the interfaces of the standard library
	}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() != ".." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		switch {
		case strings.HasSuffix(file, ".go"):
			c.read(t, file, filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator))))
		case strings.HasSuffix(file, ".md") && !slices.Contains([]string{"CHANGELOG.md", "CONTRIBUTING.md", "tried.md"}, d.Name()):
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			c.show(string(text), about[filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))])
		}
		return nil
	}))
	require.Greater(t, len(c.exports), 20, "where is the repository?")
	found := map[string]bool{}
	for folder, names := range c.exports {
		for _, name := range names {
			typ, method, isMethod := strings.Cut(name, ".")
			used := c.selected[folder][typ] || c.shown[path.Base(folder)][typ] || c.signed[folder][typ] || strings.HasPrefix(name, "Err") || slices.Contains(names, name+".Error")
			if isMethod {
				used = c.contracts[method] || c.anywhere[folder][method]
			}
			if !used {
				found[folder+": "+name] = true
			}
		}
	}
	for name := range found {
		if unused[name] == "" {
			t.Errorf("no example, bench row, Example or other package uses %s", name)
		}
	}
	for name := range unused {
		if !found[name] {
			t.Errorf("%s is used, or no longer exists", name)
		}
	}
}

func (c code) read(t *testing.T, at, name string) {
	if ok, err := linux.MatchFile(path.Dir(filepath.ToSlash(at)), path.Base(name)); err != nil || !ok {
		return // for the model checker, or for another system
	}
	f, err := parser.ParseFile(token.NewFileSet(), at, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	folder := path.Dir(name)
	test := strings.HasSuffix(name, "_test.go")
	if public := !strings.Contains("/"+folder, "/internal/") && !strings.HasPrefix(name, "examples/") && !strings.HasPrefix(name, "bench/") && !strings.HasPrefix(name, "adapters/eventloop/stocktest/"); public && !test && f.Name.Name != "main" {
		c.exports[folder] = append(c.exports[folder], exports(f)...)
		c.sign(folder, f)
	}
	imports := map[string]string{} // the folder of each imported name in the file
	for _, spec := range f.Imports {
		if to, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "github.com/braidgo/braid/"); ours {
			as := path.Base(to)
			if spec.Name != nil {
				as = spec.Name.Name
			}
			imports[as] = to
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if own := imports[strings.TrimSuffix(f.Name.Name, "_test")]; test && own == folder && !strings.HasPrefix(n.Name.Name, "Example") && !strings.HasPrefix(path.Base(name), "example_") {
				return false // a test of the package itself
			}
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				for _, id := range m.Names {
					c.contracts[id.Name] = true
				}
			}
		case *ast.SelectorExpr:
			for _, to := range imports {
				note(c.anywhere, to, n.Sel.Name)
			}
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				note(c.selected, imports[x.Name], n.Sel.Name)
			}
		}
		return true
	})
}

// about lists the pages that are about a single package. The names in their code belong to it.
var about = map[string]string{"actor/README.md": "actor", "fetch/README.md": "fetch", "simulation/README.md": "simulation", "stage/README.md": "stage", "stm/README.md": "stm"}

var (
	codeOfPage = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`|(?m:^(?: {4}|\t).*$)")
	nameInCode = regexp.MustCompile(`(?:(\w+)\.)?\b([A-Z]\w*)`)
)

// show records the names in the code of a page: the names that it selects from a package, and in a page about a package, all names.
func (c code) show(page, folder string) {
	for _, part := range codeOfPage.FindAllString(page, -1) {
		for _, name := range nameInCode.FindAllStringSubmatch(part, -1) {
			if folder != "" {
				note(c.selected, folder, name[2])
				note(c.anywhere, folder, name[2])
			}
			note(c.shown, name[1], name[2])
		}
	}
}

// sign records the types in the exported declarations of a file.
func (c code) sign(folder string, f *ast.File) {
	in := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				note(c.signed, folder, id.Name)
			}
			return true
		})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				in(d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
					in(spec.Type)
				}
			}
		}
	}
}

func note(in map[string]map[string]bool, folder, name string) {
	if in[folder] == nil {
		in[folder] = map[string]bool{}
	}
	in[folder][name] = true
}

// exports returns the exported functions, methods of exported types, types, variables and constants of a file.
func exports(f *ast.File) (names []string) {
	add := func(id *ast.Ident, of string) {
		if id.IsExported() {
			names = append(names, of+id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name, "")
				continue
			}
			if typ := receiver(d.Recv.List[0].Type); typ.IsExported() {
				add(d.Name, typ.Name+".")
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					add(spec.Name, "")
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						add(id, "")
					}
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

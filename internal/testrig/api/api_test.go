// Package api compares the exported API with the file v0.txt, so that no change of it goes unnoticed.
package api

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root   = "../../.."
	golden = "v0.txt"
)

var linux = func() build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.BuildTags = "linux", "amd64", nil
	return c
}()

var update = flag.Bool("update", false, "write v0.txt")

// TestAPI fails if an exported declaration of a public package differs from v0.txt. After an intended change,
//
//	go test ./internal/testrig/api -update
//
// writes the file, and CHANGELOG.md gets a line.
func TestAPI(t *testing.T) {
	var lines []string
	require.NoError(t, filepath.WalkDir(root, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(dir, root), string(filepath.Separator)))
		switch d.Name() {
		case "internal", "examples", "bench", "docs", "testdata":
			return fs.SkipDir
		}
		if name != "" && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if name != "" {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				return fs.SkipDir // another module
			}
		}
		found, err := exported(dir, name)
		lines = append(lines, found...)
		return err
	}))
	slices.Sort(lines)
	lines = slices.Compact(lines)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
	}
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	want := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(b), "\r\n", "\n")), "\n")
	var changes []string
	for _, l := range want {
		if !slices.Contains(lines, l) {
			changes = append(changes, "- "+l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(want, l) {
			changes = append(changes, "+ "+l)
		}
	}
	if len(changes) > 0 {
		t.Fatalf("the exported API differs from v0.txt:\n%s\nIf this is intended, run\n\n\tgo test ./internal/testrig/api -update\n\ncommit v0.txt, and add a line to CHANGELOG.md.",
			strings.Join(changes, "\n"))
	}
}

// exported returns a line for each exported declaration of a package, in its files for Linux on amd64.
func exported(dir, name string) (lines []string, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	for _, file := range names {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if ok, err := linux.MatchFile(dir, filepath.Base(file)); err != nil || !ok {
			continue
		}
		f, err := parser.ParseFile(files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if f.Name.Name == "main" {
			return nil, nil
		}
		f.Comments = nil
		ast.Inspect(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				field.Doc, field.Comment = nil, nil
			}
			return true
		})
		if !ast.FileExports(f) {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && !receiver(d.Recv.List[0].Type).IsExported() {
					continue
				}
				d.Doc, d.Body = nil, nil
				lines = append(lines, line(files, name, d))
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
				for i, spec := range d.Specs {
					suffix := ""
					switch s := spec.(type) {
					case *ast.TypeSpec:
						s.Doc, s.Comment = nil, nil
					case *ast.ValueSpec:
						s.Doc, s.Comment = nil, nil
						if d.Tok == token.VAR && s.Type == nil {
							s.Values = nil
						}
						if d.Tok == token.CONST && len(d.Specs) > 1 {
							suffix = fmt.Sprintf(" (iota %d)", i) // the value depends on the position
						}
					}
					lines = append(lines, line(files, name, &ast.GenDecl{Tok: d.Tok, Specs: []ast.Spec{spec}})+suffix)
				}
			}
		}
	}
	return lines, nil
}

// TestExported checks that each kind of exported declaration is found, and no unexported one.
func TestExported(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(`package a

import "context"

const (
	A, b = iota, 1 // a comment
	C, _
)

var V, w = 1, 2

// A T is generic.
type T[K comparable] struct {
	K K // exported
	k K
}

type I interface {
	M(ctx context.Context) error
	m()
}

type hidden struct{}

func (h hidden) Exported() {}
func (t *T[K]) Get(k K) (v int, ok bool) { return 0, false }
func (t *T[K]) get() {}

func F(x,
	y int) {
}

func f() {}
`), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_windows.go"), []byte("package a\n\nfunc Elsewhere() {}\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte("package a\n\nfunc InATest() {}\n"), 0o644))
	lines, err := exported(dir, "a")
	require.NoError(t, err)
	slices.Sort(lines)
	require.Equal(t, []string{
		"a: const A = iota, 1 (iota 0)",
		"a: const C (iota 1)",
		"a: func (t *T[K]) Get(k K) (v int, ok bool)",
		"a: func F(x,; y int)",
		"a: type I interface {; M(ctx context.Context) error; unexported; }",
		"a: type T[K comparable] struct {; K K; unexported; }",
		"a: var V",
	}, lines)
}

// receiver returns the type name of a receiver.
func receiver(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return e.(*ast.Ident)
}

// line prints a declaration on one line.
func line(files *token.FileSet, pkg string, node ast.Node) string {
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.RawFormat, Tabwidth: 8}).Fprint(&b, files, node); err != nil {
		panic(err)
	}
	var parts []string
	for l := range strings.SplitSeq(b.String(), "\n") {
		if l = strings.Join(strings.Fields(l), " "); strings.HasPrefix(l, "// contains filtered or unexported") {
			l = "unexported" // this method rules out unkeyed struct literals, and implementations elsewhere
		}
		if l != "" {
			parts = append(parts, l)
		}
	}
	return pkg + ": " + strings.Join(parts, "; ")
}

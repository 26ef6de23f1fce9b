package api

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ends lists the signatures of the methods and functions that end something. Package suspend defines their meaning.
var ends = map[string][]string{
	"Close":    {"func() error"},
	"Shutdown": {"func(ctx context.Context) error", "func(ctx context.Context, stages ...Closer) error"},
}

// TestRules checks that every type with an end has Close() error or Shutdown(ctx) error, and that options are a struct, which is
// the last parameter.
func TestRules(t *testing.T) {
	seen := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		if d.IsDir() {
			switch {
			case d.Name() != ".." && strings.HasPrefix(d.Name(), "."), d.Name() == "testdata", d.Name() == "internal", name == "bench", name == "examples":
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(path.Base(name), "explore") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, broken := range brokenRules(f, seen) {
			t.Errorf("%s: %s", name, broken)
		}
		return nil
	}))
	require.Greater(t, seen["Close"], 15, "where is the repository?")
	require.Greater(t, seen["Shutdown"], 7)
	require.Greater(t, seen["Options"], 25)

	f, err := parser.ParseFile(token.NewFileSet(), "", `package p
		func (t *T) Close(ctx context.Context) error
		func (t *T) CloseContext(ctx context.Context) error
		func (t *T) Shutdown() error
		func (o Options) Run()
		func New(o Options, f func())
		func Open(o ...q.Options[int])
		type Option func(*T)
		func (t *T) Right(o *Options)
		func (t *small) Close()
	`, parser.SkipObjectResolution)
	require.NoError(t, err)
	require.Len(t, brokenRules(f, seen), 7)
}

// brokenRules returns the exported declarations of f that break a rule, and counts those to which the rules apply.
func brokenRules(f *ast.File, seen map[string]int) (broken []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(baseName(d.Recv.List[0].Type))) {
				broken = append(broken, brokenBy(d, seen)...)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok && typ.Name.IsExported() && strings.HasSuffix(typ.Name.Name, "Option") {
					broken = append(broken, "the type "+typ.Name.Name+": options are a struct")
				}
			}
		}
	}
	return broken
}

func brokenBy(d *ast.FuncDecl, seen map[string]int) (broken []string) {
	name := d.Name.Name
	switch allowed, isEnd := ends[name], strings.HasPrefix(name, "Close") && strings.HasSuffix(name, "Context"); {
	case isEnd:
		broken = append(broken, name+": an end with a context must be called Shutdown")
	case allowed != nil:
		seen[name]++
		var signature bytes.Buffer
		_ = printer.Fprint(&signature, token.NewFileSet(), d.Type)
		if got := signature.String(); !slices.Contains(allowed, got) {
			broken = append(broken, name+" is a "+got)
		}
	}
	if d.Recv != nil && strings.HasSuffix(baseName(d.Recv.List[0].Type), "Options") {
		broken = append(broken, name+" is a method of options")
	}
	for i, p := range d.Type.Params.List {
		_, variadic := p.Type.(*ast.Ellipsis)
		if !strings.HasSuffix(baseName(p.Type), "Options") {
			continue
		}
		if seen["Options"]++; variadic || i < len(d.Type.Params.List)-1 {
			broken = append(broken, name+": options must be the last parameter, and only one")
		}
	}
	return broken
}

// baseName returns the name of a type, without its package, its type arguments and its pointer.
func baseName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return baseName(x.X)
	case *ast.Ellipsis:
		return baseName(x.Elt)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.IndexExpr:
		return baseName(x.X)
	case *ast.IndexListExpr:
		return baseName(x.X)
	}
	return ""
}

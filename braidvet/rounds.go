package braidvet

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// sequentialGets finds Gets in sequence that could be in one round, as Haxl's compiler does ("There is no Fork", section 7, where it is called the
// automatic applicative).
var sequentialGets = &analysis.Analyzer{
	Name: "rounds",
	Doc: `find Gets of package fetch in sequence that do not depend on each other

Each Get that waits needs a round. If the second of two Gets does not use the result of the first, fetch.Two performs both in one round, and
fetch.Three performs three. After the suggested change, the error is still that of the first Get that fails, but the sources also load values that
the function does not use after a failure. There is no suggestion if the errors are handled in different ways.
The analyzer reports Gets that follow each other, with only the same handling of their errors in between. It ignores Gets whose keys contain calls.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      findRounds,
}

// A get is a statement v, err := source.Get(ctx, key), and the if after it, which returns on an error.
type get struct {
	assign   *ast.AssignStmt
	call     *ast.CallExpr
	v, err   *ast.Ident
	ctx      *ast.Ident
	check    *ast.IfStmt // nil at the end of a list
	handling string      // check, as it is written
}

func findRounds(pass *analysis.Pass) (any, error) {
	lists := []ast.Node{(*ast.BlockStmt)(nil), (*ast.CaseClause)(nil), (*ast.CommClause)(nil)}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder(lists, func(n ast.Node) {
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for i := 0; i < len(list); {
			gets, next := sequence(pass, list, i)
			if len(gets) > 1 {
				pass.Report(diagnosis(pass, gets))
			}
			i = max(next, i+1)
		}
	})
	return nil, nil
}

// sequence holds the independent Gets, three at the most, that follow each other from list[i] on, and the index after them.
func sequence(pass *analysis.Pass, list []ast.Stmt, i int) (gets []get, next int) {
	for i < len(list) && len(gets) < 3 {
		g, ok := getOf(pass, list, i)
		if !ok {
			break
		}
		for _, earlier := range gets {
			if mentions(pass, g.call, earlier.v) || mentions(pass, g.call, earlier.err) || mentions(pass, g.check, earlier.v) || mentions(pass, earlier.check, g.v) ||
				g.ctx.Name != earlier.ctx.Name || pass.TypesInfo.Uses[g.ctx] != pass.TypesInfo.Uses[earlier.ctx] {
				return gets, i
			}
		}
		gets, i = append(gets, g), i+1
		if g.check == nil {
			break
		}
		i++
	}
	return gets, i
}

func getOf(pass *analysis.Pass, list []ast.Stmt, i int) (g get, ok bool) {
	if g.assign, ok = list[i].(*ast.AssignStmt); !ok || g.assign.Tok != token.DEFINE || len(g.assign.Lhs) != 2 || len(g.assign.Rhs) != 1 {
		return g, false
	}
	if g.call, ok = g.assign.Rhs[0].(*ast.CallExpr); !ok || len(g.call.Args) != 2 {
		return g, false
	}
	if n := named(callee(pass.TypesInfo, g.call)); n != "fetch.Source.Get" && n != "fetch.Memo.Get" {
		return g, false
	}
	g.v, _ = g.assign.Lhs[0].(*ast.Ident)
	g.err, _ = g.assign.Lhs[1].(*ast.Ident)
	if g.ctx, ok = g.call.Args[0].(*ast.Ident); !ok || g.v.Name == "_" || g.err.Name == "_" || pass.TypesInfo.Defs[g.v] == nil || !pure(pass, g.call.Args[1]) {
		return g, false
	}
	if s, ok := ast.Unparen(g.call.Fun).(*ast.SelectorExpr); !ok || !pure(pass, s.X) {
		return g, false
	}
	if i+1 < len(list) {
		if s, ok := list[i+1].(*ast.IfStmt); ok && isCheck(pass, s, g.err) {
			if mentions(pass, s, g.v) {
				return g, false
			}
			g.check, g.handling = s, source(pass, s)
		}
	}
	return g, true
}

// isCheck says whether s is if err != nil { return … }.
func isCheck(pass *analysis.Pass, s *ast.IfStmt, err *ast.Ident) bool {
	cond, ok := s.Cond.(*ast.BinaryExpr)
	if !ok || s.Init != nil || s.Else != nil || cond.Op != token.NEQ || len(s.Body.List) != 1 {
		return false
	}
	x, ok := cond.X.(*ast.Ident)
	y, isNil := cond.Y.(*ast.Ident)
	_, returns := s.Body.List[0].(*ast.ReturnStmt)
	return ok && isNil && returns && y.Name == "nil" && pass.TypesInfo.Uses[x] == pass.TypesInfo.ObjectOf(err)
}

// mentions says whether n mentions the variable of v.
func mentions(pass *analysis.Pass, n ast.Node, v *ast.Ident) (found bool) {
	if s, ok := n.(*ast.IfStmt); ok && s == nil {
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && pass.TypesInfo.Uses[id] != nil && pass.TypesInfo.Uses[id] == pass.TypesInfo.ObjectOf(v) {
			found = true
		}
		return !found
	})
	return found
}

// pure says whether an expression may be evaluated in another task, later than those before it: it calls nothing but conversions.
func pure(pass *analysis.Pass, e ast.Expr) bool {
	ok := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			ok = ok && pass.TypesInfo.Types[n.Fun].IsType()
		case *ast.FuncLit:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}

func diagnosis(pass *analysis.Pass, gets []get) analysis.Diagnostic {
	first, last := gets[0], gets[len(gets)-1]
	combinator := [...]string{2: "fetch.Two", 3: "fetch.Three"}[len(gets)]
	d := analysis.Diagnostic{
		Pos: first.assign.Pos(), End: last.assign.End(),
		Message: fmt.Sprintf("%d Gets in sequence need %d rounds, although none uses another's result: %s needs one round", len(gets), len(gets), combinator),
	}
	for _, g := range gets {
		if g.check == nil || g.handling != first.handling || g.err.Name != first.err.Name {
			return d // the handling says whose error it is, so the author has to write the change
		}
	}
	if text, imports, ok := together(pass, gets, combinator); ok {
		d.SuggestedFixes = []analysis.SuggestedFix{{
			Message: "Use " + combinator, TextEdits: append([]analysis.TextEdit{{Pos: d.Pos, End: d.End, NewText: []byte(text)}}, imports...),
		}}
	}
	return d
}

// together holds the statement in which combinator does all Gets, with the comments of their lines, and the edits that import package fetch. It
// fails where a name that the statement needs means something else.
func together(pass *analysis.Pass, gets []get, combinator string) (text string, imports []analysis.TextEdit, ok bool) {
	first, last := gets[0], gets[len(gets)-1]
	pos, end := first.assign.Pos(), last.assign.End()
	file := fileOf(pass, pos)
	if file == nil {
		return "", nil, false
	}
	names := &names{pass, file, pos}
	contexts, ok := names.of("context")
	if !ok {
		return "", nil, false
	}
	fetches, ok := names.of(module + "fetch")
	if !ok {
		if fetches = "fetch"; names.means(fetches) != nil {
			return "", nil, false
		}
		imports = []analysis.TextEdit{importing(file, module+"fetch")}
	}
	var comments []string
	for _, group := range file.Comments {
		for _, c := range group.List {
			if pos <= c.Pos() && c.Pos() < end {
				comments = append(comments, c.Text+"\n")
			}
		}
	}
	var results, functions []string
	for _, g := range gets {
		t, ok := names.ofType(pass.TypesInfo.TypeOf(g.v))
		if ctx := pass.TypesInfo.TypeOf(g.ctx); !ok || !isContext(ctx) || types.Unalias(ctx) != ctx {
			return "", nil, false
		}
		results = append(results, g.v.Name)
		functions = append(functions, fmt.Sprintf("\n\tfunc(%s %s.Context) (%s, error) { return %s }", g.ctx.Name, contexts, t, source(pass, g.call)))
	}
	return fmt.Sprintf("%s%s, %s := %s.%s(%s,%s)", strings.Join(comments, ""), strings.Join(results, ", "), first.err.Name, fetches,
		strings.TrimPrefix(combinator, "fetch."), first.ctx.Name, strings.Join(functions, ",")), imports, true
}

// importing is the edit that imports a package, in the first group of imports if there is one.
func importing(file *ast.File, path string) analysis.TextEdit {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Rparen.IsValid() {
			return analysis.TextEdit{Pos: g.Rparen, End: g.Rparen, NewText: []byte("\n\t" + strconv.Quote(path) + "\n")}
		}
	}
	return analysis.TextEdit{Pos: file.Name.End(), End: file.Name.End(), NewText: []byte("\n\nimport " + strconv.Quote(path))}
}

// A names says how one writes something at a place of a file.
type names struct {
	pass *analysis.Pass
	file *ast.File
	at   token.Pos
}

// means is what a name stands for at the place; nil if for nothing.
func (n *names) means(name string) types.Object {
	s := n.pass.Pkg.Scope().Innermost(n.at)
	if s == nil {
		s = n.pass.TypesInfo.Scopes[n.file]
	}
	if s == nil {
		return nil
	}
	_, o := s.LookupParent(name, n.at)
	return o
}

// of is the name of a package, if the file imports it, and nothing hides the name.
func (n *names) of(path string) (name string, ok bool) {
	for _, s := range n.file.Imports {
		if p, _ := strconv.Unquote(s.Path.Value); p == path {
			if o := n.pass.TypesInfo.PkgNameOf(s); o != nil && o.Name() != "_" && o.Name() != "." {
				return o.Name(), n.means(o.Name()) == o
			}
		}
	}
	return "", false
}

// ofType is a type as one writes it, if one can: each name in it is visible, and means what it should.
func (n *names) ofType(t types.Type) (text string, ok bool) {
	ok = true
	check := func(o *types.TypeName) {
		switch {
		case o.Pkg() == nil || o.Pkg() == n.pass.Pkg:
			ok = ok && n.means(o.Name()) == o
		default:
			_, imported := n.of(o.Pkg().Path())
			ok = ok && imported && o.Exported()
		}
	}
	var walk func(t types.Type)
	walk = func(t types.Type) {
		switch t := t.(type) {
		case *types.Basic:
			if o, isName := types.Universe.Lookup(t.Name()).(*types.TypeName); isName {
				check(o)
			}
		case *types.Named:
			check(t.Obj())
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
		case *types.Alias:
			check(t.Obj())
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
		case *types.TypeParam:
			check(t.Obj())
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Chan:
			walk(t.Elem())
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case *types.Interface:
			ok = ok && t.Empty()
		case *types.Struct:
			ok = ok && t.NumFields() == 0
		default:
			ok = false
		}
	}
	walk(t)
	return types.TypeString(t, func(p *types.Package) string {
		if p == n.pass.Pkg {
			return ""
		}
		name, _ := n.of(p.Path())
		return name
	}), ok
}

func fileOf(pass *analysis.Pass, pos token.Pos) *ast.File {
	for _, f := range pass.Files {
		if f.FileStart <= pos && pos < f.FileEnd {
			return f
		}
	}
	return nil
}

func source(pass *analysis.Pass, n ast.Node) string {
	var b bytes.Buffer
	_ = format.Node(&b, pass.Fset, n)
	return b.String()
}

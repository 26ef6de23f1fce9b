package braidvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/ctrlflow"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/cfg"
)

// lostStop is vet's lostcancel for package cancel.
var lostStop = &analysis.Analyzer{
	Name: "loststop",
	Doc: `find contexts of package cancel whose stop function is not called on every path

The parent keeps a context of package cancel, and its timer, in memory until the parent ends or the stop function is called. Vet's lostcancel
reports the same for package context. Any use of the stop function on a path counts as a call.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer, ctrlflow.Analyzer},
	Run:      findLostStops,
}

func findLostStops(pass *analysis.Pass) (any, error) {
	graphs := pass.ResultOf[ctrlflow.Analyzer].(*ctrlflow.CFGs)
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				lostIn(pass, n.Body, graphs.FuncDecl(n))
			}
		case *ast.FuncLit:
			lostIn(pass, n.Body, graphs.FuncLit(n))
		}
	})
	return nil, nil
}

func lostIn(pass *analysis.Pass, body *ast.BlockStmt, g *cfg.CFG) {
	ast.Inspect(body, func(n ast.Node) bool {
		var left []ast.Expr
		var right ast.Expr
		switch n := n.(type) {
		case *ast.FuncLit:
			return false // has its own graph
		case *ast.AssignStmt:
			if len(n.Lhs) == 2 && len(n.Rhs) == 1 {
				left, right = n.Lhs, n.Rhs[0]
			}
		case *ast.ValueSpec:
			if len(n.Names) == 2 && len(n.Values) == 1 {
				left, right = []ast.Expr{n.Names[0], n.Names[1]}, n.Values[0]
			}
		}
		if right == nil {
			return true
		}
		call, ok := ast.Unparen(right).(*ast.CallExpr)
		if !ok {
			return true
		}
		f := callee(pass.TypesInfo, call)
		if name := named(f); name != "cancel.New" && !strings.HasPrefix(name, "cancel.With") {
			return true
		}
		id, ok := left[1].(*ast.Ident)
		if !ok {
			return true
		}
		if id.Name == "_" {
			pass.ReportRangef(id, "the stop function of %s is not used: the context stays in the memory of its parent until the parent ends", shortName(f))
			return true
		}
		v, ok := pass.TypesInfo.ObjectOf(id).(*types.Var)
		if !ok || v.Parent() == pass.Pkg.Scope() || v.Pos() < body.Pos() || v.Pos() > body.End() {
			return true // others may call it
		}
		if at := unused(pass, g, n, v); at != nil {
			pass.ReportRangef(id, "%s of %s is not called on every path: the context stays in the memory of its parent until the parent ends (see the return in line %d)", id.Name, shortName(f),
				pass.Fset.Position(at.Pos()).Line)
		}
		return true
	})
}

// unused is a return that a path reaches from the definition of v without a use of v.
func unused(pass *analysis.Pass, g *cfg.CFG, def ast.Node, v *types.Var) *ast.ReturnStmt {
	uses := func(n ast.Node) (used bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && pass.TypesInfo.Uses[id] == v {
				used = true
			}
			return !used
		})
		return used
	}
	seen := make(map[*cfg.Block]bool)
	var from func(b *cfg.Block, nodes []ast.Node) *ast.ReturnStmt
	from = func(b *cfg.Block, nodes []ast.Node) *ast.ReturnStmt {
		for _, n := range nodes {
			if uses(n) {
				return nil
			}
		}
		if r := b.Return(); r != nil {
			return r
		}
		for _, next := range b.Succs {
			if seen[next] {
				continue
			}
			seen[next] = true
			if r := from(next, next.Nodes); r != nil {
				return r
			}
		}
		return nil
	}
	for _, b := range g.Blocks {
		for i, n := range b.Nodes {
			if n == def {
				return from(b, b.Nodes[i+1:])
			}
		}
	}
	return nil
}

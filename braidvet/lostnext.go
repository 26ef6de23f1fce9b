package braidvet

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// lostNext finds an actor's next step that nobody returns.
var lostNext = &analysis.Analyzer{
	Name: "lostnext",
	Doc: `find the result of React, Await, Loop and others that is not returned

The result says what the actor does next. If the body does not return it, the call has no effect, and the actor ends.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      findLostNexts,
}

func findLostNexts(pass *analysis.Pass) (any, error) {
	report := func(e ast.Expr) {
		if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && is(pass.TypesInfo.TypeOf(call), module+"actor", "Next") {
			name := "a function"
			if f := callee(pass.TypesInfo, call); f != nil {
				name = shortName(f)
			}
			pass.ReportRangef(call, "the result of %s is not returned, so it has no effect", name)
		}
	}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder([]ast.Node{(*ast.ExprStmt)(nil), (*ast.DeferStmt)(nil), (*ast.GoStmt)(nil), (*ast.AssignStmt)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ExprStmt:
			report(n.X)
		case *ast.DeferStmt:
			report(n.Call)
		case *ast.GoStmt:
			report(n.Call)
		case *ast.AssignStmt:
			for i, r := range n.Rhs {
				if len(n.Lhs) == len(n.Rhs) && isBlank(n.Lhs[i]) {
					report(r)
				}
			}
		}
	})
	return nil, nil
}

package braidvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// sharedValue finds an element of a shared slice or map that is changed in place.
var sharedValue = &analysis.Analyzer{
	Name: "sharedvalue",
	Doc: `find slices and maps of a Var or a Value whose elements are changed in place

The value of an stm.Var or a watch.Value is shared: others read it without a lock, and a transaction that is rolled back leaves the change
behind. Store a changed copy. Reported are assignments to elements of what Get or Load returns, where they stand or by a variable that has no
other value, and a delete or clear of it. What a function does with its argument is not seen, nor what is behind a pointer.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      findSharedValues,
}

var shares = map[string]bool{"stm.Var.Get": true, "stm.Var.Load": true, "watch.Value.Load": true}

func findSharedValues(pass *analysis.Pass) (any, error) {
	report := func(at, whole ast.Expr) {
		if f := sharedBy(pass, whole); f != nil {
			pass.ReportRangef(at, "the value that %s has returned is changed in place: others read it, and no rollback takes the change back", shortName(f))
		}
	}
	element := func(e ast.Expr) {
		if i, ok := ast.Unparen(e).(*ast.IndexExpr); ok && inPlace(pass, i.X) {
			report(e, i.X)
		}
	}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder([]ast.Node{(*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.CallExpr)(nil)}, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				element(l)
			}
		case *ast.IncDecStmt:
			element(n.X)
		case *ast.CallExpr:
			f, ok := ast.Unparen(n.Fun).(*ast.Ident)
			if b, is := pass.TypesInfo.Uses[f].(*types.Builtin); ok && is && (b.Name() == "delete" || b.Name() == "clear") {
				report(n, n.Args[0])
			}
		}
	})
	return nil, nil
}

// inPlace reports whether an assignment to an element of e changes what copies of e share.
func inPlace(pass *analysis.Pass, e ast.Expr) bool {
	switch pass.TypesInfo.TypeOf(e).Underlying().(type) {
	case *types.Slice, *types.Map:
		return true
	}
	return false
}

// sharedBy returns the function that has returned the value of which e is a part, if others share this value.
func sharedBy(pass *analysis.Pass, e ast.Expr) *types.Func {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if f := callee(pass.TypesInfo, e); shares[named(f)] {
			return f
		}
	case *ast.IndexExpr:
		return sharedBy(pass, e.X)
	case *ast.SliceExpr:
		return sharedBy(pass, e.X)
	case *ast.SelectorExpr:
		if t := pass.TypesInfo.TypeOf(e.X); t != nil {
			if _, ok := t.Underlying().(*types.Struct); ok {
				return sharedBy(pass, e.X)
			}
		}
	case *ast.Ident:
		if v, ok := pass.TypesInfo.Uses[e].(*types.Var); ok {
			if is := value(pass, v); is != nil {
				return sharedBy(pass, is)
			}
		}
	}
	return nil
}

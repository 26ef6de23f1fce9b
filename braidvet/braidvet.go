// Package braidvet has the analyzers of the command braidvet: they find mistakes in the use of Braid that compile. The Doc of an analyzer
// says what it looks for, and where it is blind.
package braidvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// All has the analyzers that report something.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{ignoredError, lostStop, nativeWait, noSuspend, lostNext, sharedValue, foreignContext, sequentialGets}
}

const module = "github.com/braidgo/braid/"

// callee is the function or method that call calls, where the call names it; of a generic type the method of its declaration.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	f, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok {
		return nil
	}
	return f.Origin()
}

// named is the name of a function of Braid or of another package as its users write it, such as mutex.Mutex.Lock, or
// adapters/fifo.Scheduler.Go; of packages that are not Braid's, with the whole path.
func named(f *types.Func) string {
	if f == nil || f.Pkg() == nil {
		return ""
	}
	name := strings.TrimPrefix(f.Pkg().Path(), module) + "."
	if r := f.Signature().Recv(); r != nil {
		if n := typeName(r.Type()); n != nil {
			name += n.Name() + "."
		}
	}
	return name + f.Name()
}

// typeName is the name of t, or of what t points to; nil if it has none.
func typeName(t types.Type) *types.TypeName {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj()
	}
	return nil
}

// is says whether t, or what t points to, is the type with this name in the package with this path.
func is(t types.Type, path, name string) bool {
	n := typeName(t)
	return n != nil && n.Pkg() != nil && n.Pkg().Path() == path && n.Name() == name
}

func isContext(t types.Type) bool { return is(t, "context", "Context") }

// inBraid says whether the package is Braid's own. Its examples and tests are programs as any other.
func inBraid(path string) bool { return strings.HasPrefix(path, module) }

// calls calls f for each call of the package.
func calls(pass *analysis.Pass, f func(call *ast.CallExpr)) {
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Preorder([]ast.Node{(*ast.CallExpr)(nil)}, func(n ast.Node) { f(n.(*ast.CallExpr)) })
}

// run walks over what the function with this body does itself: with the function literals that it calls where they stand or by the only name
// that they have, but neither with others nor with what a go statement does. A visit that returns false does not see what is below.
func run(pass *analysis.Pass, body ast.Node, visit func(n ast.Node) bool) {
	seen := map[ast.Node]bool{body: true}
	var walk func(body ast.Node)
	walk = func(body ast.Node) {
		ast.Inspect(body, func(n ast.Node) bool {
			switch n := n.(type) {
			case nil:
				return false
			case *ast.GoStmt:
				for _, a := range n.Call.Args {
					if _, ok := ast.Unparen(a).(*ast.FuncLit); !ok {
						walk(a)
					}
				}
				return false
			case *ast.FuncLit:
				return false
			case *ast.CallExpr:
				var called ast.Node
				switch f := ast.Unparen(n.Fun).(type) {
				case *ast.FuncLit:
					called = f.Body
				case *ast.Ident:
					if v, ok := pass.TypesInfo.Uses[f].(*types.Var); ok {
						called = declared(pass, v)
					}
				}
				if called != nil && !seen[called] {
					seen[called] = true
					walk(called)
				}
			}
			return visit(n)
		})
	}
	walk(body)
}

// block is the body of an argument that is a function: a literal, or a function of this package.
func block(pass *analysis.Pass, arg ast.Expr) ast.Node {
	switch arg := ast.Unparen(arg).(type) {
	case *ast.FuncLit:
		return arg.Body
	case *ast.Ident:
		return declared(pass, pass.TypesInfo.Uses[arg])
	case *ast.SelectorExpr:
		return declared(pass, pass.TypesInfo.Uses[arg.Sel])
	}
	return nil
}

// declared is the body of a function of this package; of a variable of this package, of the one literal that it ever has.
func declared(pass *analysis.Pass, o types.Object) ast.Node {
	switch o := o.(type) {
	case *types.Func:
		for _, f := range pass.Files {
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil && pass.TypesInfo.Defs[d.Name] == o.Origin() {
					return d.Body
				}
			}
		}
	case *types.Var:
		if l, ok := value(pass, o).(*ast.FuncLit); ok {
			return l.Body
		}
	}
	return nil
}

// value is the expression that a variable of this package has for all its life; nil if it gets several, if its address is taken, or if a
// call gives it another, as it does to a parameter.
func value(pass *analysis.Pass, v *types.Var) (only ast.Expr) {
	if v.IsField() || v.Pkg() != pass.Pkg {
		return nil
	}
	n, declared := 0, false
	assigned := func(left, right []ast.Expr) {
		for i, l := range left {
			id, ok := ast.Unparen(l).(*ast.Ident)
			if !ok || pass.TypesInfo.Defs[id] != v && pass.TypesInfo.Uses[id] != v {
				continue
			}
			declared = declared || pass.TypesInfo.Defs[id] == v
			if len(right) == 0 {
				continue // var v T
			}
			n++
			if len(left) == len(right) {
				only = ast.Unparen(right[i])
			} else {
				n++
			}
		}
	}
	for _, f := range pass.Files {
		if v.Parent() != pass.Pkg.Scope() && (v.Pos() < f.FileStart || f.FileEnd <= v.Pos()) {
			continue
		}
		ast.Inspect(f, func(x ast.Node) bool {
			switch x := x.(type) {
			case *ast.AssignStmt:
				assigned(x.Lhs, x.Rhs)
			case *ast.ValueSpec:
				var left []ast.Expr
				for _, id := range x.Names {
					left = append(left, id)
				}
				assigned(left, x.Values)
			case *ast.RangeStmt:
				for _, e := range []ast.Expr{x.Key, x.Value} {
					if e != nil {
						assigned([]ast.Expr{e, e}, []ast.Expr{x.X})
					}
				}
			case *ast.UnaryExpr:
				if id, ok := ast.Unparen(x.X).(*ast.Ident); ok && x.Op == token.AND && pass.TypesInfo.Uses[id] == v {
					n += 2
				}
			}
			return true
		})
	}
	if n != 1 || !declared {
		return nil
	}
	return only
}

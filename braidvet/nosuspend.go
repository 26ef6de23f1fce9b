package braidvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// noSuspend finds suspensions where they panic when they come: in a transaction, in a callback, in the methods of a Source.
var noSuspend = &analysis.Analyzer{
	Name: "nosuspend",
	Doc: `find suspensions in transactions, callbacks and the methods of a suspend.Source

Such a call panics as soon as it has to wait, which may first happen under load. Instead, a transaction can send a value in AfterCommit, a callback
can start a task, and a Source must take or store a value under its guard and return. The analyzer also looks at functions that are called by name.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer, waits},
	Run:      findSuspensions,
}

// The functions that call their argument as a callback.
var callsBack = map[string]bool{
	"adapters/eventloop.Loop.AfterFunc": true, "suspend.AfterFunc": true, "suspend.Then": true, "cancel.AfterFunc": true,
	"suspend.Suspend": true, "actor.Self.Watch": true, "adapters/callback.Loop.OnExecutor": true,
}

func findSuspensions(pass *analysis.Pass) (any, error) {
	w := pass.ResultOf[waits].(*waiting)
	report := func(body ast.Node, where string) {
		w.each(body, func(n ast.Node) {
			if by := w.suspension(n); by != "" {
				pass.ReportRangef(n, "%s must not suspend, but %s may", where, by)
			}
		})
	}
	seen := make(map[ast.Node]bool)
	calls(pass, func(call *ast.CallExpr) {
		f := callee(pass.TypesInfo, call)
		if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) {
			return
		}
		path := strings.TrimPrefix(f.Pkg().Path(), module)
		for _, arg := range call.Args {
			t := pass.TypesInfo.TypeOf(arg)
			if t == nil {
				continue
			}
			s, ok := t.Underlying().(*types.Signature)
			if !ok {
				continue
			}
			where := ""
			switch {
			case path == "stm" && s.Params().Len() == 1 && is(s.Params().At(0).Type(), module+"stm", "Tx"):
				where = "a transaction"
			case callsBack[named(f)], f.Name() == "Execute" && f.Signature().Recv() != nil:
				where = "a callback"
			default:
				continue
			}
			if body := block(pass, arg); body != nil && !seen[body] {
				seen[body] = true
				report(body, where)
			}
		}
	})
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			d, ok := d.(*ast.FuncDecl)
			if ok && d.Recv != nil && d.Body != nil && (d.Name.Name == "Try" || d.Name.Name == "Enqueue" || d.Name.Name == "Remove") &&
				isSource(pass.TypesInfo.Defs[d.Name].(*types.Func).Signature().Recv().Type()) {
				report(d.Body, d.Name.Name+" of a suspend.Source")
			}
		}
	}
	return nil, nil
}

// isSource says whether t has the methods of a suspend.Source.
func isSource(t types.Type) bool {
	if n := typeName(t); n == nil {
		return false
	} else if _, ok := t.(*types.Pointer); !ok {
		t = types.NewPointer(n.Type())
	}
	set := types.NewMethodSet(t)
	for i := range set.Len() {
		f := set.At(i).Obj().(*types.Func)
		if f.Name() == "Guard" && f.Signature().Results().Len() == 1 && is(f.Signature().Results().At(0).Type(), module+"suspend", "Guard") {
			return set.Lookup(nil, "Try") != nil && set.Lookup(nil, "Enqueue") != nil && set.Lookup(nil, "Remove") != nil
		}
	}
	return false
}

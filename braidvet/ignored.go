package braidvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// ignoredError finds a wait whose error is thrown away, although its context can end: what follows then runs without the lock, the permits, or
// what it waited for. It finds the same of a loop over an iterator of values and errors. It also finds a Close of a stage or of a
// natsactor.Server whose error is thrown away, and with it the number of tasks or messages that are lost.
var ignoredError = &analysis.Analyzer{
	Name: "ignorederror",
	Doc: `find waits of Braid whose error is ignored

If m.LockContext(ctx) fails, another task may hold the lock, and a deferred m.Unlock() then unlocks it for that task, without a panic. The analyzer
reports calls of LockContext, RLockContext, Acquire, Send, SendWait, Put, Publish and Wait whose results are not used, if the context can end.
context.Background() cannot end, nor can a variable that only has this value. An assignment to _ is not reported, unless the function then unlocks
or releases.

The Close of a stage drops its tasks, and only its error says so: with defer s.Close(), the tasks of Submit are lost without notice. Shutdown lets
them finish. In the same way, the Close of a natsactor.Server drops messages for which the mailbox has no room.

An iter.Seq2 of values and errors, such as that of chanx.Chan.All, ends with a pair that has the reason as its error. A loop without the second
variable runs once more for this pair, with a zero value, and a loop over stage.Each treats a failed task as a result. The analyzer reports such
loops over a call of this module, but not loops over chanx.Chan.All with a context that cannot end, which have no error after a Close. So it does
not find an ignored error of CloseWith, nor a loop over a variable, as in seq := c.All(ctx).`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      findIgnored,
}

var waitsFor = map[string]string{
	"LockContext": "another task may hold the lock", "RLockContext": "another task may hold the lock",
	"Acquire": "other tasks may hold the permits", "Send": "the value may not have been sent", "SendWait": "the message may not have been sent",
	"Put": "the value may not have been put", "Publish": "the value may not have been published", "Wait": "the event may not have happened",
}

// What gives back what a wait has taken.
var undoes = map[string]string{"LockContext": "Unlock", "RLockContext": "RUnlock", "Acquire": "Release"}

// What gives up tasks or messages and says so by its error.
var cutsOff = map[string]bool{"stage.Stage.Close": true, "stage.Closer.Close": true, "actor/natsactor.Server.Close": true}

func findIgnored(pass *analysis.Pass) (any, error) {
	statements := []ast.Node{(*ast.ExprStmt)(nil), (*ast.DeferStmt)(nil), (*ast.GoStmt)(nil), (*ast.AssignStmt)(nil), (*ast.RangeStmt)(nil)}
	pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).WithStack(statements, func(n ast.Node, push bool, stack []ast.Node) bool {
		var e ast.Expr
		switch n := n.(type) {
		case *ast.ExprStmt:
			e = n.X
		case *ast.DeferStmt:
			e = n.Call
		case *ast.GoStmt:
			e = n.Call
		case *ast.AssignStmt:
			if len(n.Rhs) != 1 || !isBlank(n.Lhs[len(n.Lhs)-1]) {
				return true
			}
			e = n.Rhs[0]
		case *ast.RangeStmt:
			if push && n.Value == nil {
				oneMore(pass, n.X)
			}
			return true
		}
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !push || !ok {
			return true
		}
		f := callee(pass.TypesInfo, call)
		if _, ok := n.(*ast.AssignStmt); !ok && cutsOff[named(f)] {
			pass.ReportRangef(call, "the error of %s is ignored: it says how much was lost; to lose nothing, use Shutdown", shortName(f))
			return true
		}
		if !isWait(f) || endless(pass, call.Args[0]) {
			return true
		}
		if _, ok := n.(*ast.AssignStmt); ok && !givesBack(pass, call, undoes[f.Name()], stack) {
			return true
		}
		pass.ReportRangef(call, "the error of %s is ignored: if ctx has ended, %s", shortName(f), waitsFor[f.Name()])
		return true
	})
	return nil, nil
}

// oneMore reports a loop over pairs of a value and an error that does not look at the error.
func oneMore(pass *analysis.Pass, over ast.Expr) {
	call, ok := ast.Unparen(over).(*ast.CallExpr)
	if !ok {
		return
	}
	f := callee(pass.TypesInfo, call)
	if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) || f.Signature().Params().Len() == 0 {
		return
	}
	if !isContext(f.Signature().Params().At(0).Type()) || named(f) == "chanx.Chan.All" && endless(pass, call.Args[0]) {
		return // this loop ends at a Close, and has no error then
	}
	if pairs, ok := types.Unalias(pass.TypesInfo.TypeOf(call)).(*types.Named); ok && is(pairs, "iter", "Seq2") && isError(pairs.TypeArgs().At(1)) {
		pass.ReportRangef(over, "the errors of %s are ignored: if it fails, the loop runs once more, with a zero value", shortName(f))
	}
}

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// isWait says whether f is a method of Braid in the list, with a context and an error.
func isWait(f *types.Func) bool {
	if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) || f.Signature().Recv() == nil || waitsFor[f.Name()] == "" {
		return false
	}
	in, out := f.Signature().Params(), f.Signature().Results()
	return in.Len() > 0 && isContext(in.At(0).Type()) && out.Len() > 0 && isError(out.At(out.Len()-1).Type())
}

// givesBack says whether the function around call later calls the method that undoes it, of the same object.
func givesBack(pass *analysis.Pass, call *ast.CallExpr, undo string, stack []ast.Node) (found bool) {
	object := func(c *ast.CallExpr) string {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok {
			return types.ExprString(s.X)
		}
		return ""
	}
	for i := len(stack) - 1; i >= 0 && undo != ""; i-- {
		switch stack[i].(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			ast.Inspect(stack[i], func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok && c.Pos() > call.End() && object(c) == object(call) {
					f := callee(pass.TypesInfo, c)
					found = found || f != nil && f.Name() == undo
				}
				return !found
			})
			return found
		}
	}
	return false
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// endless says whether ctx never ends, as far as the package shows.
func endless(pass *analysis.Pass, ctx ast.Expr) bool {
	switch e := ast.Unparen(ctx).(type) {
	case *ast.CallExpr:
		switch named(callee(pass.TypesInfo, e)) {
		case "context.Background", "context.TODO", "context.WithoutCancel":
			return true
		case "context.WithValue":
			return endless(pass, e.Args[0])
		}
	case *ast.Ident:
		if v, ok := pass.TypesInfo.Uses[e].(*types.Var); ok {
			if x := value(pass, v); x != nil {
				return endless(pass, x)
			}
		}
	}
	return false
}

package braidvet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// foreignContext finds the contexts of web frameworks that do not end when the client leaves.
var foreignContext = &analysis.Analyzer{
	Name: "foreigncontext",
	Doc: `find contexts of gin and fiber that do not end with the request

A *gin.Context is a context.Context, but its Done is nil unless the Engine has ContextWithFallback; c.Request.Context() ends with the request.
Fiber's contexts end with the server at the earliest, so a wait for a client that may leave needs a timeout. A package that sets a context of its
own in fiber is not reported.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      findForeignContexts,
}

func findForeignContexts(pass *analysis.Pass) (any, error) {
	sets := false
	calls(pass, func(call *ast.CallExpr) {
		if f := callee(pass.TypesInfo, call); f != nil && f.Pkg() != nil && isFiberPath(f.Pkg().Path()) {
			sets = sets || f.Name() == "SetUserContext" || f.Name() == "SetContext"
		}
	})
	calls(pass, func(call *ast.CallExpr) {
		f := callee(pass.TypesInfo, call)
		if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) {
			return
		}
		params := f.Signature().Params()
		if params.Len() == 0 || !isContext(params.At(0).Type()) || len(call.Args) == 0 {
			return
		}
		arg := ast.Unparen(call.Args[0])
		if t := pass.TypesInfo.TypeOf(arg); t != nil && is(t, "github.com/gin-gonic/gin", "Context") {
			text := types.ExprString(arg) + ".Request.Context()"
			d := analysis.Diagnostic{Pos: arg.Pos(), End: arg.End(), Message: "a gin.Context does not end when the client leaves: " + text + " does"}
			switch arg.(type) {
			case *ast.Ident, *ast.SelectorExpr:
				d.SuggestedFixes = []analysis.SuggestedFix{{
					Message: "Use the context of the request", TextEdits: []analysis.TextEdit{{Pos: arg.Pos(), End: arg.End(), NewText: []byte(text)}},
				}}
			}
			pass.Report(d)
			return
		}
		if isFiber(pass.TypesInfo, arg) && !sets {
			pass.ReportRangef(arg, "a context of fiber does not end when the client leaves: give the wait a timeout")
		}
	})
	return nil, nil
}

func isFiberPath(path string) bool {
	return path == "github.com/gofiber/fiber/v2" || path == "github.com/gofiber/fiber/v3"
}

// isFiber says whether the expression is a context of fiber: of version 3 the Ctx itself, of both what its methods return.
func isFiber(info *types.Info, e ast.Expr) bool {
	fiber := func(t types.Type) bool {
		n := typeName(t)
		return n != nil && n.Pkg() != nil && isFiberPath(n.Pkg().Path())
	}
	if t := info.TypeOf(e); t != nil && fiber(t) {
		return true
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f := callee(info, call)
	if f == nil || f.Signature().Recv() == nil || !fiber(f.Signature().Recv().Type()) {
		return false
	}
	switch f.Name() {
	case "Context", "UserContext", "RequestCtx":
		return true
	}
	return false
}

package braidvet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// nativeWait finds waits of Go's own in tasks of schedulers that have one goroutine: they stop all tasks of the scheduler.
var nativeWait = &analysis.Analyzer{
	Name: "nativewait",
	Doc: `find native waits in tasks of fifo, random and callback

These schedulers run one task at a time. A task that waits on a channel, a sync.WaitGroup or a sync.Cond, that sleeps, or that suspends while it
holds a sync.Mutex, blocks all other tasks, and for ever if one of them should end its wait. suspend.Blocking runs such a wait on another goroutine.
The analyzer also looks at functions that the task calls by name. It does not report a send to a channel that was made with a buffer.`,
	URL:      "https://pkg.go.dev/" + module + "braidvet",
	Requires: []*analysis.Analyzer{inspect.Analyzer, waits},
	Run:      findNativeWaits,
}

var oneAtATime = map[string]bool{"adapters/fifo.Scheduler": true, "adapters/random.Scheduler": true, "adapters/callback.Loop": true}

func findNativeWaits(pass *analysis.Pass) (any, error) {
	w := pass.ResultOf[waits].(*waiting)
	seen := make(map[ast.Node]bool)
	calls(pass, func(call *ast.CallExpr) {
		on := runsOn(pass, call)
		if on == "" {
			return
		}
		for _, arg := range call.Args {
			t := pass.TypesInfo.TypeOf(arg)
			if t == nil {
				continue
			}
			if s, ok := t.Underlying().(*types.Signature); !ok || isIterator(s) { // a sequence runs where its reader is
				continue
			}
			body := block(pass, arg)
			if body == nil || seen[body] {
				continue
			}
			seen[body] = true
			w.each(body, func(n ast.Node) {
				if by := w.blocks(n); by != "" {
					pass.ReportRangef(n, "%s blocks all tasks of the %s: call it in suspend.Blocking", by, on)
				}
				switch n := n.(type) {
				case *ast.BlockStmt:
					held(pass, w, n.List, on)
				case *ast.CaseClause:
					held(pass, w, n.Body, on)
				case *ast.SelectStmt:
					for _, c := range n.Body.List {
						held(pass, w, c.(*ast.CommClause).Body, on)
					}
				}
			})
		}
	})
	return nil, nil
}

// isIterator says whether a function is an iter.Seq or an iter.Seq2.
func isIterator(s *types.Signature) bool {
	if s.Params().Len() != 1 || s.Results().Len() != 0 {
		return false
	}
	yield, ok := s.Params().At(0).Type().Underlying().(*types.Signature)
	return ok && yield.Results().Len() == 1 && types.Identical(yield.Results().At(0).Type(), types.Typ[types.Bool])
}

// runsOn is the scheduler with one goroutine on which call runs the functions that it is given.
func runsOn(pass *analysis.Pass, call *ast.CallExpr) string {
	f := callee(pass.TypesInfo, call)
	if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) {
		return ""
	}
	if named(f) == "adapters/fifo.Run" {
		return f.Pkg().Name() + ".Scheduler"
	}
	on := func(t types.Type) string {
		n := typeName(t)
		if n == nil || n.Pkg() == nil || !oneAtATime[strings.TrimPrefix(n.Pkg().Path(), module)+"."+n.Name()] {
			return ""
		}
		return n.Pkg().Name() + "." + n.Name()
	}
	if r := f.Signature().Recv(); r != nil {
		if s := on(r.Type()); s != "" && f.Name() != "OnIdle" {
			return s
		}
	}
	for _, arg := range call.Args {
		if t := pass.TypesInfo.TypeOf(arg); t != nil && on(t) != "" {
			return on(t)
		}
	}
	return ""
}

// held reports a sync.Mutex that a list of statements locks and holds while a later one suspends.
func held(pass *analysis.Pass, w *waiting, list []ast.Stmt, on string) {
	for i, s := range list {
		m, name := locks(pass, locked(s))
		if name != "Lock" && name != "RLock" {
			continue
		}
		for _, s := range list[i+1:] {
			if _, ok := s.(*ast.DeferStmt); ok {
				continue
			}
			by, unlocked := "", false
			w.each(s, func(n ast.Node) {
				if c, ok := n.(*ast.CallExpr); ok {
					m2, name := locks(pass, c)
					unlocked = unlocked || m2 == m && strings.HasSuffix(name, "Unlock")
				}
				if by == "" && !unlocked {
					by = w.suspension(n)
				}
			})
			if by != "" {
				pass.ReportRangef(list[i], "%s is held while %s suspends: a task of the %s that locks it then blocks all", m, by, on)
			}
			if by != "" || unlocked { // another path may still hold it, and is not followed
				break
			}
		}
	}
}

// locked is the call of a statement that is a call.
func locked(s ast.Stmt) *ast.CallExpr {
	if e, ok := s.(*ast.ExprStmt); ok {
		if c, ok := ast.Unparen(e.X).(*ast.CallExpr); ok {
			return c
		}
	}
	return new(ast.CallExpr)
}

// locks is the sync.Mutex, as it is written, that a call locks or unlocks, and the name of the method.
func locks(pass *analysis.Pass, call *ast.CallExpr) (m, name string) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	switch n := named(callee(pass.TypesInfo, call)); n {
	case "sync.Mutex.Lock", "sync.Mutex.Unlock", "sync.RWMutex.Lock", "sync.RWMutex.Unlock", "sync.RWMutex.RLock", "sync.RWMutex.RUnlock":
		return types.ExprString(sel.X), sel.Sel.Name
	}
	return "", ""
}

package braidvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// waits finds out which functions suspend and which wait natively, themselves or in a function that they call by name, over packages. A call by
// an interface or a variable is not followed.
var waits = &analysis.Analyzer{
	Name:       "waits",
	Doc:        "which functions suspend, and which wait natively",
	Run:        findWaits,
	FactTypes:  []analysis.Fact{new(suspends), new(blocks)},
	ResultType: reflect.TypeFor[*waiting](),
}

// suspends is the fact of a function that may suspend its task, and blocks of one that may wait natively; By is the wait's name.
type (
	suspends struct{ By string }
	blocks   struct{ By string }
)

func (*suspends) AFact()           {}
func (*blocks) AFact()             {}
func (s *suspends) String() string { return "suspends: " + s.By }
func (b *blocks) String() string   { return "blocks: " + b.By }

// The functions of package suspend in which a task suspends: all others of Braid call one of them.
var suspending = map[string]bool{
	"suspend.Suspend": true, "suspend.Wait": true, "suspend.WaitLazily": true, "suspend.Select": true, "suspend.SelectOrdered": true,
	"suspend.Do": true, "suspend.Sleep": true, "suspend.Blocking": true, "suspend.BlockingValue": true,
}

var blocking = map[string]bool{"time.Sleep": true, "sync.WaitGroup.Wait": true, "sync.Cond.Wait": true}

type waiting struct{ pass *analysis.Pass }

// suspends is the name of the wait that the call may make; empty if it makes none, as far as one sees.
func (w *waiting) suspends(call *ast.CallExpr) string {
	f := callee(w.pass.TypesInfo, call)
	if f == nil || named(f) == "suspend.TrySelect" { // a TrySelect tries, and does not wait
		return ""
	}
	if suspending[named(f)] {
		return shortName(f)
	}
	var s suspends
	if w.pass.ImportObjectFact(f, &s) {
		return s.By
	}
	return ""
}

// iterates is the name of the function of Braid whose iterator n ranges over, and which takes a context: its iterator suspends. Empty if n does
// not.
func (w *waiting) iterates(n ast.Node) string {
	r, ok := n.(*ast.RangeStmt)
	if !ok {
		return ""
	}
	call, ok := ast.Unparen(r.X).(*ast.CallExpr)
	if !ok {
		return ""
	}
	f := callee(w.pass.TypesInfo, call)
	if f == nil || f.Pkg() == nil || !inBraid(f.Pkg().Path()) || f.Signature().Params().Len() == 0 || !isContext(f.Signature().Params().At(0).Type()) {
		return ""
	}
	if _, ok := w.pass.TypesInfo.TypeOf(call).Underlying().(*types.Signature); !ok {
		return ""
	}
	return shortName(f)
}

// suspension is the name of the suspension of a node; empty if it has none.
func (w *waiting) suspension(n ast.Node) string {
	if c, ok := n.(*ast.CallExpr); ok {
		return w.suspends(c)
	}
	return w.iterates(n)
}

// blocks is the name of the native wait of a node; empty if it has none.
func (w *waiting) blocks(n ast.Node) string {
	info := w.pass.TypesInfo
	switch n := n.(type) {
	case *ast.SelectStmt:
		for _, c := range n.Body.List {
			if c.(*ast.CommClause).Comm == nil {
				return ""
			}
		}
		return "a select"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive from a channel"
		}
	case *ast.SendStmt:
		if !w.hasRoom(n.Chan) {
			return "a send to a channel"
		}
	case *ast.RangeStmt:
		if t := info.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Chan); ok {
				return "a range over a channel"
			}
		}
	case *ast.CallExpr:
		f := callee(info, n)
		if f == nil {
			return ""
		}
		if blocking[named(f)] {
			return shortName(f)
		}
		var b blocks
		if w.pass.ImportObjectFact(f, &b) {
			return b.By
		}
	}
	return ""
}

// hasRoom says whether the channel is made with a buffer where it is declared: such a send is meant to go through.
func (w *waiting) hasRoom(ch ast.Expr) bool {
	id, ok := ast.Unparen(ch).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := w.pass.TypesInfo.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	c, ok := value(w.pass, v).(*ast.CallExpr)
	return ok && len(c.Args) == 2
}

// each calls f with the nodes that the body runs. The cases of a select wait as one, so f gets the select only, and the bodies of its cases.
func (w *waiting) each(body ast.Node, f func(n ast.Node)) {
	run(w.pass, body, func(n ast.Node) bool {
		f(n)
		if s, ok := n.(*ast.SelectStmt); ok {
			for _, c := range s.Body.List {
				for _, st := range c.(*ast.CommClause).Body {
					w.each(st, f)
				}
			}
			return false
		}
		return true
	})
}

func findWaits(pass *analysis.Pass) (any, error) {
	w := &waiting{pass}
	// The standard library does not suspend, and most of its functions wait or not for reasons that the source does not show.
	if first, _, _ := strings.Cut(pass.Pkg.Path(), "/"); !strings.Contains(first, ".") && (pass.Module == nil || pass.Module.Path == "" || pass.Module.Path == "std") {
		return w, nil
	}
	for changed := true; changed; {
		changed = false
		for _, file := range pass.Files {
			for _, d := range file.Decls {
				d, ok := d.(*ast.FuncDecl)
				if !ok || d.Body == nil {
					continue
				}
				f := pass.TypesInfo.Defs[d.Name].(*types.Func)
				hasS, hasB := pass.ImportObjectFact(f, new(suspends)), pass.ImportObjectFact(f, new(blocks)) || inBraid(pass.Pkg.Path())
				w.each(d.Body, func(n ast.Node) {
					if !hasS {
						if by := w.suspension(n); by != "" {
							if inBraid(pass.Pkg.Path()) {
								by = shortName(f)
							}
							pass.ExportObjectFact(f, &suspends{by})
							hasS, changed = true, true
						}
					}
					if !hasB {
						if by := w.blocks(n); by != "" {
							pass.ExportObjectFact(f, &blocks{by})
							hasB, changed = true, true
						}
					}
				})
			}
		}
	}
	return w, nil
}

// shortName is the name of a function as one writes it outside its package.
func shortName(f *types.Func) string {
	name := named(f)
	return name[strings.LastIndex(name, "/")+1:]
}

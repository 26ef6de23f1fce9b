package lazy

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
)

// A forcing is one call of Force that found no value. It waits for the function, or runs it. Then it is the context of the function.
// A Force that the same goroutine calls meanwhile, or that gets a context derived from it, is its part.
//
// So lazies form a graph. An edge leads from one to another if a part of the first one's runner forces the second:
//
//	lazy --runner--> forcing --part--> forcing --of--> lazy
//
// Invariant: the graph has no circle. A Force adds its edges before it waits or runs, and returns ErrRecursive if one would
// close a circle. The last edge of a circle sees the others: a runner is stored before it has parts.
type forcing struct {
	context.Context
	of    *core
	gid   int64    // the calling goroutine
	in    [2]place // it is part of two forcings at most: by its context, and by its goroutine
	at    node     // its place in of.parts, if it is part of anything
	parts dlist.List[*forcing]
	outer *forcing // the forcing that the goroutine was running before

	seenBelow, seenAbove uint64 // the last walks that came here
}

type node = dlist.Node[*forcing]

// A place is that of a forcing among the parts of another.
type place struct {
	node
	whole *forcing // nil: none
}

// A core is the part of a Lazy in the graph. The lock of its group protects all fields but runner, and the forcings.
type core struct {
	runner atomicx.Pointer[forcing] // written under the guard of the Lazy; before the runner has parts
	group  atomicx.Pointer[group]
	parts  dlist.List[*forcing] // the forcings of it that are part of others
}

var lastWalk atomicx.Uint64

type forcingKey struct{}

func newForcing(ctx context.Context, of *core) *forcing {
	f := &forcing{Context: ctx, of: of, gid: gid.Get()}
	f.in[0].whole, _ = ctx.Value(forcingKey{}).(*forcing)
	if outer, ok := ctx.(*forcing); ok {
		f.Context = outer.Context // as deep as the user's are
	}
	return f
}

// enter adds the edges of f, unless that would close a circle.
func (f *forcing) enter() (recursive bool) {
	byContext, byGoroutine := &f.in[0], &f.in[1]
	if byGoroutine.whole = innermost(f.gid); byGoroutine.whole == byContext.whole {
		byGoroutine.whole = nil
	}
	if byContext.whole == nil && byGoroutine.whole == nil {
		return false
	}
	g := f.lock()
	defer g.Unlock()
	if f.closesCircle() {
		return true
	}
	for i := range f.in {
		if p := &f.in[i]; p.whole != nil {
			p.Value = f
			p.whole.parts.Push(&p.node)
		}
	}
	f.at.Value = f
	f.of.parts.Push(&f.at)
	g.edges++
	return false
}

// leave undoes enter.
func (f *forcing) leave() {
	if f.in[0].whole == nil && f.in[1].whole == nil {
		return
	}
	g := f.lock()
	defer g.Unlock()
	if !f.of.parts.Remove(&f.at) {
		return
	}
	for i := range f.in {
		if p := &f.in[i]; p.whole != nil {
			p.whole.parts.Remove(&p.node)
		}
	}
	g.left()
}

// closesCircle reports whether a path leads from the lazy that f forces to a forcing that f is part of.
//
// It searches from both ends by turns, edge by edge, and ends when either has no more edges. So it takes twice as long as
// the shorter search. Chains that grow in any order take n log n steps altogether: where two are joined, the shorter one is
// walked. (This is the two-way search of Haeupler, Kavitha, Mathew, Sen and Tarjan, Incremental Cycle Detection, Topological
// Ordering, and Strong Component Maintenance, 2012, without an order of the nodes.)
func (f *forcing) closesCircle() bool {
	mark := lastWalk.Add(1)
	below, above := walk{mark: mark}, walk{mark: mark, up: true}
	below.come(f.of.runner.Load())
	for i := range f.in {
		if above.come(f.in[i].whole) {
			return true
		}
	}
	for !below.done() && !above.done() {
		if below.step() || above.step() {
			return true
		}
	}
	return false
}

// A walk goes down, from a runner to the runners of the lazies that its parts force; or up, from a runner to the forcings
// that its lazy's forcings are part of.
type walk struct {
	mark uint64 // of both walks of a search, and of no other search
	up   bool
	todo []*forcing
	edge *node // the next of the last one taken from todo
}

func (w *walk) done() bool { return w.edge == nil && len(w.todo) == 0 }

// step follows one edge, and reports whether the other walk has been where it leads.
func (w *walk) step() (met bool) {
	if w.edge == nil {
		last := len(w.todo) - 1
		f := w.todo[last]
		w.todo = w.todo[:last]
		switch {
		case !w.up:
			w.edge = f.parts.First()
		case f.of.runner.Load() == f: // otherwise no forcing waits for it
			w.edge = f.of.parts.First()
		}
		return false
	}
	part := w.edge.Value
	w.edge = w.edge.Next()
	if w.up {
		return w.come(part.in[0].whole) || w.come(part.in[1].whole)
	}
	return w.come(part.of.runner.Load())
}

// come takes f, which may be nil, into the walk, and reports whether the other walk has been there.
func (w *walk) come(f *forcing) (met bool) {
	if f == nil {
		return false
	}
	mine, other := &f.seenBelow, &f.seenAbove
	if w.up {
		mine, other = other, mine
	}
	if *mine != w.mark {
		*mine = w.mark
		w.todo = append(w.todo, f)
	}
	return *other == w.mark
}

// Value implements context.Context.
func (f *forcing) Value(key any) any {
	if key == (forcingKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// String keeps fmt from reading the graph.
func (f *forcing) String() string { return "lazy.Force" }

// AfterFunc calls that of the context of Force, if it has one.
func (f *forcing) AfterFunc(g func()) (stop func() bool) {
	if a, ok := f.Context.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(g)
	}
	return context.AfterFunc(f.Context, g)
}

package lazy

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
)

// A forcing is one call of Force that found no value. It waits for the function, or runs it and is the context that
// the function gets. What else is being forced in the course of that is its part: by the same goroutine, or with a
// context that descends from it.
//
// So there is a graph: a lazy leads to the forcing that runs its function, a forcing to its parts, and a part to its
// lazy. A Force enters the graph before it waits or runs, and refuses if then a way leads from its lazy to a forcing
// that it is part of. Of all that is in a circle, the last to come is a part, as a runner has no parts before it
// runs; whoever adds it sees the rest.
type forcing struct {
	context.Context
	of    *core
	gid   int64    // the calling goroutine
	in    [2]place // what it is part of: by its context, and by its goroutine
	parts *place   // guarded by graph
	outer *forcing // what the goroutine was running before
	seen  uint64   // the last walk that has come here; guarded by graph
}

// A place is that of a forcing among the parts of another. It is guarded by graph.
type place struct {
	part       *forcing
	whole      *forcing // nil: none
	next, prev *place
}

// A core is what the graph knows of a Lazy.
type core struct {
	runner atomicx.Pointer[forcing] // written under the guard of the Lazy; before the runner has parts
}

var graph struct {
	atomicx.Mutex
	running map[int64]*forcing // for each goroutine that runs a function, the innermost
	walks   uint64
}

type forcingKey struct{}

func newForcing(ctx context.Context, of *core) *forcing {
	f := &forcing{Context: ctx, of: of, gid: gid.Get()}
	f.in[0].whole, _ = ctx.Value(forcingKey{}).(*forcing)
	if outer, ok := ctx.(*forcing); ok {
		f.Context = outer.Context // as deep as the user's are
	}
	return f
}

// enter makes f a part of what it is part of, unless that would close a circle.
func (f *forcing) enter() (recursive bool) {
	graph.Lock()
	defer graph.Unlock()
	byContext, byGoroutine := &f.in[0], &f.in[1]
	if byGoroutine.whole = graph.running[f.gid]; byGoroutine.whole == byContext.whole {
		byGoroutine.whole = nil
	}
	if byContext.whole == nil && byGoroutine.whole == nil {
		return false // nobody waits for it in the graph
	}
	graph.walks++
	if f.of.leadsTo(byContext.whole, byGoroutine.whole) {
		return true
	}
	for i := range f.in {
		if p := &f.in[i]; p.whole != nil {
			p.part = f
			if p.next = p.whole.parts; p.next != nil {
				p.next.prev = p
			}
			p.whole.parts = p
		}
	}
	return false
}

// leave undoes enter.
func (f *forcing) leave() {
	if f.in[0].whole == nil && f.in[1].whole == nil {
		return
	}
	graph.Lock()
	defer graph.Unlock()
	for i := range f.in {
		p := &f.in[i]
		if p.whole == nil {
			continue
		}
		if p.prev != nil {
			p.prev.next = p.next
		} else {
			p.whole.parts = p.next
		}
		if p.next != nil {
			p.next.prev = p.prev
		}
		*p = place{}
	}
}

// leadsTo reports whether a way leads from c to f or g, which may be nil. The caller holds graph.
func (c *core) leadsTo(f, g *forcing) bool {
	r := c.runner.Load()
	if r == nil || r.seen == graph.walks {
		return false
	}
	if r == f || r == g {
		return true
	}
	r.seen = graph.walks
	for p := r.parts; p != nil; p = p.next {
		if p.part.of.leadsTo(f, g) {
			return true
		}
	}
	return false
}

// begin says that from now on what the goroutine does is part of f.
func (f *forcing) begin() {
	graph.Lock()
	defer graph.Unlock()
	if graph.running == nil {
		graph.running = map[int64]*forcing{}
	}
	f.outer = graph.running[f.gid]
	graph.running[f.gid] = f
}

// end undoes begin.
func (f *forcing) end() {
	graph.Lock()
	defer graph.Unlock()
	if f.outer != nil {
		graph.running[f.gid] = f.outer
		f.outer = nil
	} else {
		delete(graph.running, f.gid)
	}
}

// Value implements context.Context.
func (f *forcing) Value(key any) any {
	if key == (forcingKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// AfterFunc is that of the context which was given to Force, if it has one.
func (f *forcing) AfterFunc(g func()) (stop func() bool) {
	if a, ok := f.Context.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(g)
	}
	return context.AfterFunc(f.Context, g)
}

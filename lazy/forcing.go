package lazy

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
)

// A forcing is one call of Force that found no value. It waits for the function, or runs it. Then it is the context of the function.
// A Force that the same goroutine calls while the function runs, or that gets a context derived from it, is its part.
//
// A forcing that waits blocks the forcings that it is part of. They block the forcings that wait for their functions, and so on.
//
// Invariant: no forcing blocks itself. A part is listed before it waits, and looks under the same lock whether it would block the runner
// that it is to wait for. So the last part of a circle sees all earlier parts: a runner is stored before it has parts.
type forcing struct {
	context.Context
	of      *core
	gid     int64       // the calling goroutine
	in      [2]*forcing // it is part of two forcings at most, see below; nil: none
	at      node        // its place in of.waiting, if it has waited as a part
	blocked int         // its parts that wait or are blocked; under waits
	seen    uint64      // the last look that came here; under waits
}

const (
	byContext = iota
	byGoroutine
)

type node = dlist.Node[*forcing]

// A core is the part of a Lazy that forcings use.
type core struct {
	runner  atomicx.Pointer[forcing] // written under the guard of the Lazy; before the runner has parts
	waiting dlist.List[*forcing]     // parts that wait, or have waited and have not returned yet; under waits
}

// waits protects the links between forcings. Only a part that has to wait takes it.
var waits struct {
	atomicx.Mutex
	looks uint64
}

type forcingKey struct{}

func newForcing(ctx context.Context, of *core) *forcing {
	f := &forcing{Context: ctx, of: of, gid: gid.Get()}
	f.in[byContext], _ = ctx.Value(forcingKey{}).(*forcing)
	f.in[byGoroutine] = innermost(f.gid)
	if outer, ok := ctx.(*forcing); ok {
		f.Context = outer.Context // makes the chain as deep as the user's contexts are
	}
	return f
}

// closesCircle is called under the guard of the Lazy, before f waits. It reports whether f would block the runner that it waits for. It
// looks at all forcings that f would block, unless nothing blocks the runner: then a row that grows at its end costs a step a link.
func (f *forcing) closesCircle() bool {
	if f.in == [2]*forcing{} {
		return false
	}
	waits.Lock()
	defer waits.Unlock()
	if !f.of.waiting.Has(&f.at) {
		f.at.Value = f
		f.of.waiting.Push(&f.at)
		f.count(1)
	}
	runner := f.of.runner.Load()
	if runner.blocked == 0 {
		return false
	}
	waits.looks++
	var buf [16]*forcing
	for blocked := append(buf[:0], f); len(blocked) > 0; {
		last := len(blocked) - 1
		parts := blocked[last].in
		blocked = blocked[:last]
		for _, whole := range parts {
			for whole != nil && whole.of.runner.Load() != whole { // it has ended before its part
				whole = whole.in[byContext]
			}
			if whole == nil || whole.seen == waits.looks {
				continue
			}
			if whole == runner {
				f.unlist() // f does not wait, so it closes no other circle
				return true
			}
			whole.seen = waits.looks
			blocked = append(blocked, whole)
			for n := whole.of.waiting.First(); n != nil; n = n.Next() {
				blocked = append(blocked, n.Value)
			}
		}
	}
	return false
}

// leave is called when Force returns.
func (f *forcing) leave() {
	if f.at.Value != nil {
		waits.Lock()
		f.unlist()
		waits.Unlock()
	}
}

func (f *forcing) unlist() {
	if f.of.waiting.Remove(&f.at) {
		f.count(-1)
	}
}

// count adds by to the blocked parts of the forcings that f is part of: 1 if f now blocks them, -1 if it no longer
// does. A wait inside of n functions that force each other takes n steps for it.
func (f *forcing) count(by int) {
	for _, whole := range f.in {
		if whole == nil {
			continue
		}
		was := whole.blocked
		if whole.blocked += by; was == 0 || whole.blocked == 0 {
			whole.count(by)
		}
	}
}

// running holds the innermost forcing of each goroutine that runs a function. It is divided, so that two goroutines rarely
// share a lock. A goroutine finds its own entry only, so a checker need not see the locks, which differ with the id.
var running [64]struct {
	sync.Mutex
	innermost map[int64]*forcing
	_         [48]byte // a cache line each
}

func innermost(gid int64) *forcing {
	s := &running[uint64(gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	return s.innermost[gid]
}

// runs makes inner the innermost forcing of the goroutine of f: f itself, or the forcing around f.
func (f *forcing) runs(inner *forcing) {
	s := &running[uint64(f.gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	switch {
	case inner == nil:
		delete(s.innermost, f.gid)
		return
	case s.innermost == nil:
		s.innermost = map[int64]*forcing{}
	}
	s.innermost[f.gid] = inner
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

// AfterFunc calls the method of the context of Force, if it has one.
func (f *forcing) AfterFunc(g func()) (stop func() bool) { return cancelctx.AfterFunc(f.Context, g) }

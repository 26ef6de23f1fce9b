package lazy

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
)

// A forcing is one call of Force that found no value. It waits for the function, or runs it. Then it is the context of the function.
// A Force that the same goroutine calls meanwhile, or that gets a context derived from it, is its part.
//
// A forcing that waits blocks the forcings that it is part of. They block the forcings that wait for their functions, and so on.
//
// Invariant: no forcing blocks itself. A part is listed before it waits, and looks under the same lock whether it would block the runner
// that it is to wait for. So the last part of a circle sees the others: a runner is stored before it has parts.
type forcing struct {
	context.Context
	of   *core
	gid  int64         // the calling goroutine
	in   [2]*forcing   // it is part of two forcings at most, see below; nil: none
	live atomicx.Int32 // itself, until Force returns, and its parts that are live
	at   node          // its place in of.waiting, if it is part of anything
	seen uint64        // the last look that came here
}

const (
	byContext = iota
	byGoroutine
)

type node = dlist.Node[*forcing]

// A core is what forcings know of a Lazy.
type core struct {
	runner  atomicx.Pointer[forcing] // written under the guard of the Lazy; before the runner has parts
	waiting dlist.List[*forcing]     // parts that wait, or have waited and have not returned yet
}

// waits protects all lists of parts that wait. Only a part that has to wait takes it.
var waits struct {
	atomicx.Mutex
	looks uint64
}

type forcingKey struct{}

func newForcing(ctx context.Context, of *core) *forcing {
	f := &forcing{Context: ctx, of: of, gid: gid.Get()}
	f.in[byContext], _ = ctx.Value(forcingKey{}).(*forcing)
	f.in[byGoroutine] = innermost(f.gid)
	f.live.Store(1)
	for _, whole := range f.in {
		if whole != nil {
			whole.keep()
		}
	}
	if outer, ok := ctx.(*forcing); ok {
		f.Context = outer.Context // as deep as the user's are
	}
	return f
}

// closesCircle is called under the guard of the Lazy, before f waits. It reports whether f would block the runner that it waits for. It
// looks at all forcings that f would block, unless the runner has had no part yet, and so is not blocked by anything.
func (f *forcing) closesCircle() bool {
	if f.in == [2]*forcing{} {
		return false
	}
	waits.Lock()
	defer waits.Unlock()
	if f.at.Value == nil {
		f.at.Value = f
		f.of.waiting.Push(&f.at)
	}
	runner := f.of.runner.Load()
	if runner.live.Load() == 1 {
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
				f.of.waiting.Remove(&f.at) // f does not wait, so it closes no other circle
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
	defer f.drop()
	if f.at.Value != nil {
		waits.Lock()
		f.of.waiting.Remove(&f.at)
		waits.Unlock()
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

// AfterFunc calls that of the context of Force, if it has one.
func (f *forcing) AfterFunc(g func()) (stop func() bool) {
	if a, ok := f.Context.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(g)
	}
	return context.AfterFunc(f.Context, g)
}

// keep counts a part of f. An f that has ended, with all its parts, counts again in those that it is part of.
func (f *forcing) keep() {
	for n := f.live.Load(); n > 0; n = f.live.Load() {
		if f.live.CompareAndSwap(n, n+1) {
			return
		}
	}
	waits.Lock()
	defer waits.Unlock()
	f.keepLocked()
}

func (f *forcing) keepLocked() {
	for n := f.live.Load(); n > 0; n = f.live.Load() {
		if f.live.CompareAndSwap(n, n+1) {
			return
		}
	}
	for _, whole := range f.in {
		if whole != nil {
			whole.keepLocked()
		}
	}
	f.live.Store(1)
}

func (f *forcing) drop() {
	if f.live.Add(-1) == 0 {
		for _, whole := range f.in {
			if whole != nil {
				whole.drop()
			}
		}
	}
}

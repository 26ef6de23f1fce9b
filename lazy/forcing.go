package lazy

import (
	"context"
	"sync"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A forcing is one call of Force that found no value. It either waits for the function or runs it. A forcing that runs the function is also
// the context that the function gets. A Force is a part of such a forcing if the same goroutine calls it while the function runs, or if its
// context is derived from the forcing.
//
// A forcing that waits blocks every forcing that it is a part of. Each blocked forcing in turn blocks the forcings that wait for its function.
//
// Invariant: no forcing blocks itself. Before a part waits, it adds itself to core.waiting and checks whether it would block the runner for
// which it would wait, both under waits.Mutex. Therefore the last part of a cycle sees all earlier parts. It also sees their runners,
// because a runner is stored before it has parts.
type forcing struct {
	context.Context
	of      *core
	gid     int64       // the id of the calling goroutine
	in      [2]*forcing // the forcings of which this forcing is a part, by context and by goroutine; nil means none
	at      node        // the node in of.waiting, used if this forcing waits as a part
	blocked int         // the number of parts that wait or are blocked; protected by waits.Mutex
	seen    uint64      // the number of the last search that visited this forcing; protected by waits.Mutex
	lazy    interface{ passFrom(f *forcing) }
	heir    suspend.Heir
	called  bool // this forcing has the turn, and has not run since it waited; protected by the Lazy's guard, like heir
}

const (
	byContext = iota
	byGoroutine
)

type node = dlist.Node[*forcing]

// A core has the fields of a Lazy that forcings use. Unlike a Lazy, it has no type parameter.
type core struct {
	runner  atomicx.Pointer[forcing] // written under the Lazy's guard, before the runner has parts
	waiting dlist.List[*forcing]     // the parts that have begun to wait and have not returned, of the run so far; protected by waits.Mutex
}

// waits protects the links between forcings. Only a part that must wait locks it. The number of searches so far is in waits.looks.
var waits struct {
	atomicx.Mutex
	looks uint64
}

// A cancelled is a forcing whose context has ended while it waited, or before it ran. It is a suspend.Inheritor.
type cancelled forcing

// Inherit passes the turn on, if the forcing has it.
func (c *cancelled) Inherit() { c.lazy.passFrom((*forcing)(c)) }

type forcingKey struct{}

func newForcing(ctx context.Context, of *core) *forcing {
	f := &forcing{Context: ctx, of: of, gid: gid.Get()}
	f.in[byContext], _ = ctx.Value(forcingKey{}).(*forcing)
	f.in[byGoroutine] = innermost(f.gid)
	if outer, ok := ctx.(*forcing); ok {
		f.Context = outer.Context // keeps the chain of contexts as short as the user's
	}
	return f
}

// closesCycle reports whether f would block the runner for which f is about to wait. The caller must hold the Lazy's guard. If the runner
// has no blocked parts, there is no cycle. With this check, a chain that grows at its end costs only one step for each link. Otherwise
// closesCycle visits all forcings that f would block.
func (f *forcing) closesCycle() bool {
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
			for whole != nil && whole.of.runner.Load() != whole { // the forcing whole has ended before its part
				whole = whole.in[byContext]
			}
			if whole == nil || whole.seen == waits.looks {
				continue
			}
			if whole == runner {
				f.unlist() // f does not wait, so it must not stay listed
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

// stopWaiting removes f from the list of waiting parts, if f is listed. Force calls stopWaiting when it returns.
func (f *forcing) stopWaiting() {
	if f.at.Value != nil {
		waits.Lock()
		f.unlist()
		waits.Unlock()
	}
}

// unlistAll removes all parts from the list, because the run for which they wait has failed and is not repeated for them. Until their tasks
// run, another run of the function may begin, for which they do not wait. The caller must hold the Lazy's guard.
func (c *core) unlistAll() {
	waits.Lock()
	defer waits.Unlock()
	for n := c.waiting.First(); n != nil; n = c.waiting.First() {
		n.Value.unlist()
	}
}

func (f *forcing) unlist() {
	if f.of.waiting.Remove(&f.at) {
		f.count(-1)
	}
}

// count changes the number of blocked parts of each forcing of which f is a part. The parameter by is 1 if f now blocks these forcings, and
// -1 if f no longer blocks them. If each of n functions forces the next, count takes n steps for a wait in the innermost function.
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

// running maps the id of each goroutine that runs a function to the innermost forcing of the goroutine. The map is sharded, so that two
// goroutines rarely share a lock. The locks are plain sync.Mutexes: each goroutine reads only its own entry, so the model checker need not
// see them.
var running [64]struct {
	sync.Mutex
	innermost map[int64]*forcing
	_         [48]byte // fills a cache line
}

func innermost(gid int64) *forcing {
	s := &running[uint64(gid)%uint64(len(running))]
	s.Lock()
	defer s.Unlock()
	return s.innermost[gid]
}

// runs stores inner as the innermost forcing of f's goroutine. The parameter inner is f, the forcing around f, or nil.
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

// String prevents fmt from reading the graph of forcings.
func (f *forcing) String() string { return "lazy.Force" }

// AfterFunc calls g after f's context has ended. It uses the AfterFunc method of the context that was passed to Force, if it has one.
func (f *forcing) AfterFunc(g func()) (stop func() bool) { return cancelctx.AfterFunc(f.Context, g) }

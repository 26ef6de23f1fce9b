package ledger

import (
	"maps"
	"reflect"
	"time"
	"weak"

	"github.com/braidgo/braid/internal/gid"
)

// A Scope is an object whose members are tasks, and that has not ended.
type Scope struct {
	Seq    uint64 // a unique number, since a later scope may have the same address
	Kind   reflect.Type
	Addr   uintptr
	Parent uint64    // the number of the scope of which the task that has opened this one was a member, or 0
	Since  time.Time // zero if the scope was opened before Start
	Stack  []uintptr // the stack of the call that has opened the scope, or nil
}

// scopes maps addresses to scopes. A scope that was garbage-collected before its end is removed by the next sweep.
type scopes struct {
	by    map[uintptr]scope
	swept int // the number of scopes after the last sweep
}

type scope struct {
	Scope
	object interface{ alive() bool }
}

// Opens records that the calling task has opened the scope s.
func Opens[T any](s *T) {
	parent := scopeOf(gid.Get())
	if parent == 0 { // maybe the first scope in the body of a Pull
		parent = scopeOf(ID())
	}
	note(s, Scope{Parent: parent, Since: time.Now(), Stack: callers(0)})
}

// Ends records that the scope s has ended.
func Ends[T any](s *T) {
	at := Addr(s)
	p := partOf(int64(at))
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.scopes.by, at)
}

// Joins records that the calling task is a member of s until it calls leave, and holds s, since the end of s waits for it. The body of a
// Pull is a member on its own goroutine, because its scope may last while its callers leave and join others.
func Joins[T any](s *T) (leave func()) {
	Took(s)
	id := gid.Get()
	outer := enter(id, note(s, Scope{}))
	return func() {
		enter(id, outer)
		Gave(s)
	}
}

// note records the scope s, unless it is recorded already, and returns its number.
func note[T any](s *T, as Scope) uint64 {
	as.Kind, as.Addr = reflect.TypeFor[T](), Addr(s)
	p := partOf(int64(as.Addr))
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.scopes.by[as.Addr]; ok && old.object.alive() {
		return old.Seq
	}
	if !On() {
		return 0
	}
	if len(p.scopes.by) > 2*p.scopes.swept+16 {
		p.scopes.sweep()
	}
	as.Seq = seq.Add(1)
	put(&p.scopes.by, as.Addr, scope{as, pointer[T]{weak.Make(s)}})
	return as.Seq
}

// enter sets the innermost scope of a goroutine, and returns the one before.
func enter(id int64, scope uint64) (outer uint64) {
	p := partOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	outer = p.in[id]
	if scope == 0 || !On() {
		delete(p.in, id)
	} else {
		put(&p.in, id, scope)
	}
	return outer
}

func scopeOf(id int64) uint64 {
	p := partOf(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.in[id]
}

func (s *scopes) sweep() {
	for at, o := range s.by {
		if !o.object.alive() {
			delete(s.by, at)
		}
	}
	s.swept = len(s.by)
}

// Scopes returns all recorded scopes, and the number of the innermost scope of each goroutine that is a member of one. While the body of a
// Pull runs for a task, the task is a member of the body's scope; of the last that was opened, if the body calls another Pull.
func Scopes() (all []Scope, of map[int64]uint64) {
	of = map[int64]uint64{}
	lent := map[int64]int64{}
	for i := range parts {
		p := &parts[i]
		p.mu.Lock()
		p.scopes.sweep()
		for _, o := range p.scopes.by {
			all = append(all, o.Scope)
		}
		for id, s := range p.in {
			of[id] = s
		}
		maps.Copy(lent, p.lent)
		p.mu.Unlock()
	}
	bodies := map[int64]uint64{}
	for id, by := range lent {
		bodies[by] = max(bodies[by], of[id])
	}
	for by, s := range bodies {
		if s != 0 {
			of[by] = s
		}
	}
	return all, of
}

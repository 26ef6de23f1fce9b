package stage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/braidgo/braid/internal/atomicx"
)

// An asking is a handler that waits: for the task of its Do, or for room for a task. It is in the list of its stage meanwhile.
//
// A handler that waits keeps its slot, so handlers may wait for each other's slots for ever: where each slot of a stage is held by a handler
// that waits for a slot of another, and so on around. The last handler to wait looks for such a cycle, as only it completes one.
// Chandy, Misra and Haas call this the OR model: a task in a queue can go on as soon as any slot of the stage is given back. So
// there is a deadlock if no handler that is reached from here runs.
type asking struct {
	from   *core // the stage of the handler
	task   *task
	at     atomicx.Pointer[core] // the stage that task has entered last, or wants to enter
	queued bool                  // it waits there. Under the guard of that stage
	index  int                   // in from.asking, under its guard
	fails  bool                  // it was in a cycle, and goes on. Under the guard of from
	stop   func(cause error)     // ends a wait for room
}

// moved takes note that the task of a has entered the queue of c.
func (a *asking) moved(c *core) {
	a.at.Store(c)
	a.queued = true
}

// endCycle is called by a handler that is going to wait. If it would wait for ever, one Do of the cycle fails with an ErrCycle: this one,
// or that of a task of this one.
func (a *asking) endCycle() {
	locked := []*Pool{a.from.pool}
	for {
		slices.SortFunc(locked, func(p, q *Pool) int { return cmp.Compare(p.id, q.id) })
		for _, p := range locked {
			p.guard.Lock()
		}
		s := search{locked: locked}
		end := func() {}
		if !s.goesOn(a) {
			end = a.fail()
		}
		for _, p := range locked {
			p.guard.Unlock()
		}
		if s.unlocked == nil {
			end()
			return
		}
		locked = append(locked, s.unlocked)
	}
}

// fail ends a wait of a cycle. It is called under all guards, and returns what is to be done without.
func (a *asking) fail() (end func()) {
	err := fmt.Errorf("%w: %s", ErrCycle, a.way())
	for !a.queued {
		a = a.at.Load().askingIn(a.task)
	}
	a.fails = true
	if a.stop != nil {
		return func() { a.stop(err) }
	}
	c := a.at.Load()
	c.server.drop(a.task)
	return func() {
		c.pool.kick()
		a.task.leave(err)
	}
}

// A search looks at stages whose guards it holds.
type search struct {
	locked   []*Pool
	unlocked *Pool // its guard is needed, too
	seen     map[*core]bool
}

// goesOn reports whether something that a waits for can go on, or is not known to be unable to.
func (s *search) goesOn(a *asking) bool {
	c := a.at.Load()
	switch {
	case !slices.Contains(s.locked, c.pool):
		s.unlocked = c.pool
		return true
	case a.fails || a.at.Load() != c: // it went on just now
		return true
	case !a.queued:
		b := c.askingIn(a.task)
		return b == nil || s.goesOn(b)
	case s.seen[c]:
		return false
	}
	if s.seen == nil {
		s.seen = map[*core]bool{}
	}
	s.seen[c] = true
	return c.held || c.free() > 0 || len(c.asking) < c.slots || a.stop != nil && c.admits(a.task) ||
		slices.ContainsFunc(c.asking, s.goesOn)
}

// askingIn returns what the handler of t waits for, nil if it runs. t is in progress in c.
func (c *core) askingIn(t *task) *asking {
	for _, a := range c.asking {
		if a.stop != nil { // on the way to another stage, or in a Submit
			if a.task == t || a.task.parent == t {
				return a
			}
		} else if parent := a.task.parent; parent == t {
			return a
		} else if b, ok := parent.values.(several); ok && b.has(t) {
			return a
		}
	}
	return nil
}

// way names the stages around the cycle.
func (a *asking) way() string {
	names, seen := []string{a.from.name}, map[*core]bool{a.from: true}
	for c := a.at.Load(); ; c = a.at.Load() {
		if names = append(names, c.name); seen[c] {
			return strings.Join(names, " -> ")
		}
		seen[c] = true
		if a.queued {
			a = c.asking[0]
		} else {
			a = c.askingIn(a.task)
		}
	}
}

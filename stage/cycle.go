package stage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/braidgo/braid/suspend"
)

// endCycle is called by a handler that is going to wait. If it would wait without end, one Do of the cycle fails with an ErrCycle: this one,
// or that of a task of this one.
func (a *asking) endCycle() {
	locked := []*suspend.Guard{&a.from.pool.guard}
	for {
		suspend.LockAll(locked)
		s := search{locked: locked}
		end := func() {}
		if a.waits() && !s.goesOn(a) {
			end = a.fail()
		}
		suspend.UnlockAll(locked)
		if s.unlocked == nil {
			end()
			return
		}
		locked = append(locked, s.unlocked)
	}
}

// waits reports whether a is in the list of its stage.
func (a *asking) waits() bool {
	return a.index < len(a.from.asking) && a.from.asking[a.index] == a
}

// fail ends a wait of a cycle. It is called under all guards, and returns the rest, to be done without.
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
	locked   []*suspend.Guard
	unlocked *suspend.Guard // is needed as well
	seen     map[*core]bool
}

// goesOn reports whether something that a waits for can go on, or is not known to be unable to.
func (s *search) goesOn(a *asking) bool {
	c := a.at.Load()
	guard := &c.pool.guard
	switch {
	case !slices.Contains(s.locked, guard):
		s.unlocked = guard
		return true
	case a.fails || a.at.Load() != c || a.stop != nil && !a.queued: // it went on just now
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

// askingIn returns the wait of the handler of t, nil if it runs. t is in progress in c.
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

// block gives back the permit of a handler of c that is going to wait. If a says for what, a cycle is ended first. goOn takes the permit
// again.
func (c *core) block(a *asking) {
	c.pool.guard.Lock()
	c.blocked++
	if a != nil {
		a.index = len(c.asking)
		c.asking = append(c.asking, a)
	}
	c.pool.running--
	c.pool.release()
	if a != nil {
		a.endCycle()
	}
}

func (c *core) goOn(a *asking) {
	c.pool.guard.Lock()
	c.blocked--
	if a != nil {
		last := len(c.asking) - 1
		c.asking[a.index] = c.asking[last]
		c.asking[a.index].index = a.index
		c.asking[last] = nil
		c.asking = c.asking[:last]
	}
	c.pool.running++
	c.pool.guard.Unlock()
}

package stage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/suspend"
)

// examine examines the wait a. If a is part of a cycle of waits that would never end, examine ends one wait of the cycle with an ErrCycle.
// If the Do of a was cancelled and its task is still queued, examine ends the task, so that the parent need not wait until a worker
// reaches it. The caller must hold no guard.
func (a *asking) examine() {
	s := search{locked: suspend.Guards{&a.from.pool.guard, &a.at.Load().pool.guard}}
	asked := false
	for {
		s.locked = s.locked.Lock()
		s.number = searches.Add(1)
		end := func() {}
		switch {
		case a.task.gone.Load() && a.stop == nil:
			if c := a.at.Load(); s.enters(a, c) && a.in.Load() == c && !a.task.told {
				a.task.told = true
				end = func() { a.task.countDown(errorOf(a.task)) }
			}
		case a.waits() && !s.goesOn(a):
			if !asked { // a context's Err may be foreign code, so asking.wasCancelled is called without the guards
				asked = true
				s.locked.Unlock()
				if slices.ContainsFunc(s.waits, (*asking).wasCancelled) {
					return
				}
				s = search{locked: s.locked}
				continue
			}
			end = a.fail()
		}
		s.locked.Unlock()
		if s.unlocked == nil {
			end()
			return
		}
		s = search{locked: append(s.locked, s.unlocked)}
	}
}

// fail ends one wait of the cycle that contains a. The caller must hold all guards, and must call the returned function without
// them.
func (a *asking) fail() (end func()) {
	err := fmt.Errorf("%w: %s", ErrCycle, a.way())
	for a.in.Load() == nil {
		a = a.at.Load().askingIn(a.task)
	}
	a.fails = true
	if a.stop != nil {
		return func() { a.stop(err) }
	}
	return a.at.Load().server.drop(a.task, err)
}

// A search follows waits through the stages whose guards it holds.
type search struct {
	locked   suspend.Guards
	unlocked *suspend.Guard // another guard that examine must lock before it searches again
	waits    []*asking      // the waits visited so far, which cannot go on
	number   uint64         // marks the stages that were visited
}

// searches is the number of the last search.
var searches atomic.Uint64

// wasCancelled reports whether the wait was cancelled, so that its handler will go on. The end of a Lazily context does not end the wait of a
// Do. A context whose Err panics counts as not done. The panic must not reach the caller, which may be an unrelated handler.
func (a *asking) wasCancelled() (yes bool) {
	defer func() { _ = recover() }()
	if a.ctx != nil {
		return a.ctx.Err() != nil
	}
	return a.task.gone.Load() || !isLazy(a.task.values) && a.task.unwanted()
}

func isLazy(ctx context.Context) bool {
	_, ok := ctx.(*lazily.Context)
	return ok
}

// enters reports whether a.task is in c. If the guard of c is not held, enters returns false and makes examine lock the guard and
// search again.
func (s *search) enters(a *asking, c *core) bool {
	if guard := &c.pool.guard; !slices.Contains(s.locked, guard) {
		s.unlocked = guard
		return false
	}
	return a.at.Load() == c // false if the task has just moved on
}

// goesOn reports whether the wait a may end without help. goesOn returns true if this is unknown.
func (s *search) goesOn(a *asking) bool {
	c := a.at.Load()
	if !s.enters(a, c) || a.fails {
		return true
	}
	switch {
	case a.stop != nil && (a.in.Load() != c || c.closed || c.givenUp > 0 || c.admits(a.task)): // the task has been accepted or refused, or soon will be
		return true
	case a.in.Load() != c:
		s.waits = append(s.waits, a)
		b := c.askingIn(a.task)
		return b == nil || s.goesOn(b)
	case c.held || c.lentLater > 0 || c.free() > 0 || len(c.asking) < c.taken: // nearly always true, so it is checked before append allocates
		return true
	}
	s.waits = append(s.waits, a)
	if c.seen == s.number {
		return false
	}
	c.seen = s.number
	for _, b := range c.asking {
		if s.goesOn(b) {
			return true
		}
	}
	return false
}

// askingIn returns the wait that blocks the handler of t, or nil if the handler runs. t must be in progress in c.
func (c *core) askingIn(t *task) *asking {
	for _, a := range c.asking {
		parent := a.task.parent
		// The handler waits for a child, or the task itself waits for room in the next stage, alone or with its batch.
		if parent == t || a.stop != nil && (a.task == t || c.o.Batch > 0 && c.together(a.task, t)) {
			return a
		}
		if parent != nil {
			if b, ok := parent.values.(several); ok && b.has(t) {
				return a
			}
		}
	}
	return nil
}

// together reports whether t and u are in the same batch.
func (c *core) together(t, u *task) bool {
	return slices.ContainsFunc(c.pool.workers, func(w *worker) bool {
		if w.at != c {
			return false
		}
		b, ok := w.task.values.(several)
		return ok && b.has(t) && b.has(u)
	})
}

// way returns the names of the stages around the cycle.
func (a *asking) way() string {
	names, seen := []string{a.from.name}, map[*core]bool{a.from: true}
	for c := a.at.Load(); ; c = a.at.Load() {
		if names = append(names, c.name); seen[c] {
			return strings.Join(names, " -> ")
		}
		seen[c] = true
		if a.in.Load() == c {
			a = c.asking[0]
		} else {
			a = c.askingIn(a.task)
		}
	}
}

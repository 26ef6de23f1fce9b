package actor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// An actor is a child of another one if it is spawned with the context of the other, or with a context derived from it, unless that never
// ends: context.WithoutCancel detaches.

// A lineage takes the place of the parent of an actor's context. It adds the actor to the values.
type lineage life

func (l *lineage) Deadline() (time.Time, bool) { return l.above().Deadline() }

func (l *lineage) Done() <-chan struct{} { return l.above().Done() }

func (l *lineage) Err() error { return l.above().Err() }

func (l *lineage) Value(key any) any {
	if key == (lineageKey{}) {
		return (*life)(l)
	}
	return l.above().Value(key)
}

func (l *lineage) above() context.Context {
	if l.parent == nil {
		return context.Background()
	}
	return *l.parent
}

// lineageKey is the key by which a context finds the innermost actor that it is of.
type lineageKey struct{}

func (lineageKey) Passing() {}

func actorOf(ctx context.Context) *life {
	l, _ := ctx.Value(lineageKey{}).(*life)
	return l
}

// A child is the place of an actor among the children of another one.
type child struct {
	dlist.Node[member]
	parent *life
}

// A member is an actor, to its parent.
type member interface {
	lifeOf() *life
	stop()
}

// errOwnEnd is the error of an actor that waits for its own end, or for its parent, which may be waiting for the ends of its children.
var errOwnEnd = errors.New("actor: a wait for the caller's own end, or for the end of its parent")

// cameFrom reports whether l is p, or a descendant of p.
func (l *life) cameFrom(p *life) bool {
	for ; l != nil && l != p && l.child != nil; l = l.child.parent {
	}
	return l == p
}

func (l *life) leaveFamily() {
	if l.child == nil {
		return
	}
	p := l.child.parent
	p.guard.Lock()
	p.ties.children.Remove(&l.child.Node)
	p.guard.Unlock()
}

// offspring returns the children that have not ended.
func (l *life) offspring() (all []member) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.ties == nil {
		return nil
	}
	for n := l.ties.children.First(); n != nil; n = n.Next() {
		all = append(all, n.Value)
	}
	return all
}

// outlive waits for the ends of children. A Kill of the actor ends the wait, with its error.
func (l *life) outlive(children []member) error {
	for _, c := range children {
		it := c.lifeOf()
		if _, err := suspend.Wait[struct{}](&l.ctx, (*ending)(it), true); err != nil {
			return err
		}
		it.leaveFamily() // it is about to leave anyway
	}
	return nil
}

// outliveKilled waits for the ends of the children that are killed.
func (l *life) outliveKilled() error {
	return l.outlive(slices.DeleteFunc(l.offspring(), func(c member) bool { return c.lifeOf().ctx.Err() == nil }))
}

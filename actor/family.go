package actor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// An actor that is spawned with another actor's context, or with a context derived from it, is that actor's child. If this context
// never ends, as after context.WithoutCancel, the new actor has no parent.

// A lineage is the parent of an actor's context. It wraps the context that was passed to Spawn, and adds the actor as the value of
// lineageKey.
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
	if l.given == nil || l.given.parent == nil {
		return context.Background()
	}
	return *l.given.parent
}

// lineageKey is the key of the context value that holds the innermost actor.
type lineageKey struct{}

func (lineageKey) Passing() {}

func actorOf(ctx context.Context) *life {
	l, _ := ctx.Value(lineageKey{}).(*life)
	return l
}

// A child is an actor's node in its parent's list of children.
type child struct {
	dlist.Node[*life]
	parent  *life
	awaited bool // the parent waits until the child has left the family; protected by the parent's guard
}

// errOwnEnd is returned to an actor that waits for its own end or for its parent's end. The parent may be waiting for the ends of its
// children, so neither would end.
var errOwnEnd = errors.New("actor: an actor waits for its own end, or for the end of its parent")

// cameFrom reports whether l is p, or a descendant of p.
func (l *life) cameFrom(p *life) bool {
	for ; l != nil && l != p && l.child != nil; l = l.child.parent {
	}
	return l == p
}

// leaveFamily removes the actor from its parent's children. If the caller must call publishEnd for the parent, it returns the parent.
func (l *life) leaveFamily() (parent *life) {
	if l.child == nil {
		return nil
	}
	p := l.child.parent
	p.guard.Lock()
	defer p.guard.Unlock()
	t := p.ties
	t.children.Remove(&l.child.Node)
	if l.child.awaited {
		if t.awaited--; t.awaited == 0 {
			t.left.Resume(struct{}{}, nil)
		}
	}
	if !t.waits || t.children.First() != nil {
		return nil
	}
	t.waits = false
	return p
}

// offspring returns the children in the family.
func (l *life) offspring() (all []*life) {
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

// outlive waits until the children have left the family. If the actor is killed first, outlive returns the error of the cancellation.
func (l *life) outlive(children []*life) error {
	l.guard.Lock()
	for _, c := range children {
		if n := c.child; l.ties.children.Has(&n.Node) {
			n.awaited = true
			l.ties.awaited++
		}
	}
	l.guard.Unlock()
	_, err := suspend.WaitLazily[struct{}](&l.ctx, (*outliving)(l))
	return err
}

// An outliving is a life as a Source: a wait on it ends when the awaited children have left the family.
type outliving life

func (o *outliving) Guard() *suspend.Guard { return &o.guard }

func (o *outliving) Try() (none struct{}, ok bool, _ error) { return none, o.ties.awaited == 0, nil }

func (o *outliving) Enqueue(r suspend.Resumer[struct{}]) { o.ties.left = r }

func (o *outliving) Remove(suspend.Resumer[struct{}]) { o.ties.left = suspend.Resumer[struct{}]{} }

// outliveKilled waits until the children that have been killed have left the family, with all their descendants.
func (l *life) outliveKilled() error {
	killed := slices.DeleteFunc(l.offspring(), func(c *life) bool { return c.ctx.Err() == nil })
	if len(killed) == 0 {
		return nil
	}
	return l.outlive(killed)
}

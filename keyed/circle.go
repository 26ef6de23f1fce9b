package keyed

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
)

// A loading is the part of a load that the search for circles uses. A Get is a part of a load if its context is derived from the
// context of the load. Such a Get blocks the load while it waits for another load.
//
// Invariant: no load waits for itself. A Get that is a part of a load adds itself to the list waits and then searches, both under
// circles. So the last Get of a circle sees all others.
type loading struct {
	ended atomicx.Bool         // set before the waiters are resumed
	waits dlist.List[*loading] // what the parts of this load wait for; protected by circles, like seen
	seen  uint64               // the number of the last search that visited this load
}

// circles protects the links between loads. Only a Get that is a part of a load locks it.
var circles struct {
	atomicx.Mutex
	searches uint64
}

type loadingKey struct{}

// waitFor records that the load whose context ctx is derived from waits for the load l, until done is called. It returns
// ErrRecursive, and records nothing, if l waits for that load.
func (l *loading) waitFor(ctx context.Context) (done func(), err error) {
	whole, _ := ctx.Value(loadingKey{}).(*loading)
	if whole == nil || whole.ended.Load() {
		return func() {}, nil
	}
	circles.Lock()
	defer circles.Unlock()
	circles.searches++
	if l.reaches(whole) {
		return nil, ErrRecursive
	}
	n := &dlist.Node[*loading]{Value: l}
	whole.waits.Push(n)
	return func() {
		circles.Lock()
		defer circles.Unlock()
		whole.waits.Remove(n)
	}, nil
}

// reaches reports whether l is other or waits for it, directly or through other loads. A wait for a load that has ended is over.
func (l *loading) reaches(other *loading) bool {
	if l == other {
		return true
	}
	l.seen = circles.searches
	for n := l.waits.First(); n != nil; n = n.Next() {
		if next := n.Value; next.seen != circles.searches && !next.ended.Load() && next.reaches(other) {
			return true
		}
	}
	return false
}

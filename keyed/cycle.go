package keyed

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
)

// A load is the part of a load that the search for cycles uses. A Get is a part of a load if its context is derived from the
// context of the load. Such a Get blocks the load while it waits for another load.
//
// Invariant: no load waits for itself. A Get that is a part of a load adds itself to the list waits and then searches, both under
// cycles. So the last Get of a cycle sees all others.
type load struct {
	ended atomicx.Bool      // set before the waiters are resumed
	waits dlist.List[*load] // what the parts of this load wait for; protected by cycles, like seen
	seen  uint64            // the number of the last search that visited this load
}

// cycles protects the links between loads. Only a Get that is a part of a load locks it.
var cycles struct {
	atomicx.Mutex
	searches uint64
}

type loadKey struct{}

// waitFor records that the load whose context ctx is derived from waits for the load l, until done is called. It returns
// ErrRecursive, and records nothing, if l waits for that load.
func (l *load) waitFor(ctx context.Context) (done func(), err error) {
	whole, _ := ctx.Value(loadKey{}).(*load)
	if whole == nil || whole.ended.Load() {
		return func() {}, nil
	}
	cycles.Lock()
	defer cycles.Unlock()
	cycles.searches++
	if l.reaches(whole) {
		return nil, ErrRecursive
	}
	n := &dlist.Node[*load]{Value: l}
	whole.waits.Push(n)
	return func() {
		cycles.Lock()
		defer cycles.Unlock()
		whole.waits.Remove(n)
	}, nil
}

// reaches reports whether l is other or waits for it, directly or through other loads. A wait for a load that has ended is over.
func (l *load) reaches(other *load) bool {
	if l == other {
		return true
	}
	l.seen = cycles.searches
	for n := l.waits.First(); n != nil; n = n.Next() {
		if next := n.Value; next.seen != cycles.searches && !next.ended.Load() && next.reaches(other) {
			return true
		}
	}
	return false
}

package lazy

import (
	"cmp"
	"slices"

	"github.com/braidgo/braid/internal/atomicx"
)

// A group is the lock of lazies that are connected in the graph. An edge between two groups merges them, and a group ends
// with its last edge. So unrelated lazies share no lock.
type group struct {
	atomicx.Mutex
	id    uint64 // the order of locking
	into  atomicx.Pointer[group]
	ended atomicx.Bool
	edges int // forcings that are part of others
}

var lastGroup atomicx.Uint64

// lock merges the groups of f's lazy and of those that f is part of, and locks the result. The caller unlocks it.
func (f *forcing) lock() *group {
	var buf [3]*core
	cores := append(buf[:0], f.of)
	for i := range f.in {
		if whole := f.in[i].whole; whole != nil {
			cores = append(cores, whole.of)
		}
	}
	for {
		if g := tryLock(cores); g != nil {
			return g
		}
	}
}

// tryLock fails if another has merged or ended a group meanwhile.
func tryLock(cores []*core) *group {
	var buf [3]*group
	groups := buf[:0]
	for _, c := range cores {
		if g := c.root(); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	slices.SortFunc(groups, func(g, h *group) int { return cmp.Compare(g.id, h.id) })
	valid, most := true, groups[0]
	for _, g := range groups {
		g.Lock()
		valid = valid && g.into.Load() == nil && !g.ended.Load()
		if g.edges > most.edges {
			most = g
		}
	}
	for _, g := range groups {
		if g != most && valid {
			g.into.Store(most)
			most.edges += g.edges
		}
	}
	for _, g := range groups {
		if g != most || !valid {
			g.Unlock()
		}
	}
	if !valid {
		return nil
	}
	return most
}

// root finds the group of c, or makes one.
func (c *core) root() *group {
	for {
		first := c.group.Load()
		if first == nil {
			c.group.CompareAndSwap(nil, &group{id: lastGroup.Add(1)})
			continue
		}
		g := first
		for into := g.into.Load(); into != nil; into = g.into.Load() {
			g = into
		}
		switch {
		case g.ended.Load():
			c.group.CompareAndSwap(first, nil)
			continue
		case g != first:
			c.group.CompareAndSwap(first, g) // a shorter way
		}
		return g
	}
}

// left is called under the lock when a forcing has left.
func (g *group) left() {
	if g.edges--; g.edges == 0 {
		g.ended.Store(true)
	}
}

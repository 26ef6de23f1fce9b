package suspend

import (
	"cmp"
	"slices"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Guard is the lock of a primitive. It is held for a few instructions, never across a suspension, and never while code outside
// the primitive runs. Resume may be called while a Guard is held. The zero Guard is unlocked.
type Guard struct {
	mu atomicx.Mutex
	number
}

// Lock calls Point and then locks g. The holder of a Guard must not lock another Guard, except in Guards.
func (g *Guard) Lock() {
	Point()
	g.mu.Lock()
}

// Relock is like Lock, but without the Point, for an operation that has already begun. The compiler inlines Relock, but not Lock.
func (g *Guard) Relock() { g.mu.Lock() }

// Unlock unlocks g.
func (g *Guard) Unlock() { g.mu.Unlock() }

// Guards are several Guards that are locked together. Call Unlock only on the result of Lock:
//
//	locked := guards.Lock()
//	defer locked.Unlock()
type Guards []*Guard

// Lock locks each of guards once, even if it is listed twice. All callers lock in the same order, so that two of them do not wait
// for each other. Lock sorts guards in place, and returns the part of the slice that it has locked, for Unlock.
func (guards Guards) Lock() (locked Guards) {
	if len(guards) <= 8 { // insertion sort
		for i, g := range guards {
			id := g.rank()
			for ; i > 0 && guards[i-1].rank() > id; i-- {
				guards[i] = guards[i-1]
			}
			guards[i] = g
		}
	} else {
		slices.SortFunc(guards, func(g, h *Guard) int { return cmp.Compare(g.rank(), h.rank()) })
	}
	n := 0
	for i, g := range guards {
		if i == 0 || g != guards[n-1] {
			guards[n] = g
			n++
			g.mu.Lock()
		}
	}
	return guards[:n]
}

// Unlock unlocks each of guards, which must be the result of Lock.
func (guards Guards) Unlock() {
	for _, g := range guards {
		g.Unlock()
	}
}

package census

import (
	"cmp"
	"slices"

	"github.com/braidgo/braid/internal/ledger"
)

// A node is a wait in the graph of waits and holders.
type node struct {
	*ledger.Wait
	needs []*object
	stuck bool
}

// An object is a held object with its waiters.
type object struct {
	held    *ledger.Held // the record of the holders
	waiters []*node      // sorted by arrival
	dirty   bool
}

// A graph contains all waits and all held objects. A wait is stuck if no known task can end it: for each of its objects,
// stuck tasks hold so many permits that too few can become free, or an earlier waiter for the object is stuck. A wait for a
// timer, or for an object without a known holder, is never stuck. So no wait for a promise, a channel or a latch is stuck.
type graph struct {
	nodes   []*node
	objects map[uintptr]*object // keyed by the address of the object
	by      map[ledger.Who]*node
	holds   map[ledger.Who][]*object
	extents extents[*object]
}

func newGraph(waits []ledger.Wait, holds []ledger.Held) *graph {
	g := &graph{objects: map[uintptr]*object{}, by: map[ledger.Who]*node{}, holds: map[ledger.Who][]*object{}}
	for i := range holds {
		o := &object{held: &holds[i]}
		g.objects[o.held.Addr] = o
		g.extents.add(o.held.Addr, o.held.Bytes, o)
		for _, h := range o.held.By {
			if h.Goroutine != 0 {
				g.holds[h.Who] = append(g.holds[h.Who], o)
			}
		}
	}
	slices.SortFunc(waits, func(x, y ledger.Wait) int { return cmp.Compare(x.Seq, y.Seq) })
	for i := range waits {
		n := &node{Wait: &waits[i], stuck: len(waits[i].For) > 0}
		g.nodes = append(g.nodes, n)
		if n.Goroutine != 0 {
			g.by[n.Who] = n
		}
		for _, f := range n.For {
			o, known := g.extents.find(f.Addr)
			if f.Addr == 0 || !known {
				n.stuck = false
				o = nil
			} else {
				o.waiters = append(o.waiters, n)
			}
			n.needs = append(n.needs, o)
		}
	}
	g.reduce()
	return g
}

// reduce marks each wait that can end as not stuck, and repeats this until no other wait can end. It is the graph reduction
// of Holt (Some deadlock properties of computer systems, 1972), applied to the permits that are known.
func (g *graph) reduce() {
	var todo []*object
	touch := func(o *object) {
		if o != nil && !o.dirty {
			o.dirty = true
			todo = append(todo, o)
		}
	}
	for _, o := range g.objects {
		touch(o)
	}
	for len(todo) > 0 {
		o := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		o.dirty = false
		free := g.free(o)
		for _, n := range o.waiters {
			if !n.stuck {
				continue
			}
			if g.wants(n, o) > free {
				break // n stays stuck, like all waiters behind it
			}
			n.stuck = false
			for _, held := range g.holds[n.Who] {
				touch(held)
			}
			for _, other := range n.needs {
				touch(other)
			}
		}
	}
}

// free returns the number of permits that are free after all holders that are not stuck have released their permits.
func (g *graph) free(o *object) uint64 {
	free := o.held.Size
	for _, h := range o.held.By {
		if g.stuckHolder(h) {
			free -= min(free, h.N)
		}
	}
	return free
}

func (g *graph) stuckHolder(h ledger.Hold) bool {
	n := g.by[h.Who]
	return n != nil && n.stuck
}

// wants returns the smallest number of permits of o with which a case of n is ready.
func (g *graph) wants(n *node, o *object) uint64 {
	least := ^uint64(0)
	for i, f := range n.For {
		if n.needs[i] == o {
			least = min(least, f.Wants)
		}
	}
	if least > o.held.Size { // after a Resize, o refuses n when n is its first waiter
		return 0
	}
	return least
}

// A link is the reason why a wait (the field from) is stuck.
type link struct {
	from, to *node
	object   *object
	hold     *ledger.Hold // the permits that the task in the field to holds; nil if that task is an earlier waiter
}

// why returns the link from n, which must be stuck.
func (g *graph) why(n *node) link {
	o := n.needs[0]
	if g.wants(n, o) <= g.free(o) {
		i := slices.IndexFunc(o.waiters, func(first *node) bool { return first.stuck })
		return link{n, o.waiters[i], o, nil}
	}
	i := slices.IndexFunc(o.held.By, g.stuckHolder)
	return link{n, g.by[o.held.By[i].Who], o, &o.held.By[i]}
}

// cycles returns the cycles of stuck waits, and for each cycle the number of other waits that are stuck behind it. One
// link leads from every stuck wait, so the links lead from each wait into exactly one cycle.
func (g *graph) cycles() (all [][]link, behind []int) {
	in := map[*node]int{} // maps a wait to the index of its cycle
	for _, n := range g.nodes {
		if !n.stuck {
			continue
		}
		var way []link
		on := map[*node]int{}
		at := n
		for {
			if i, ok := in[at]; ok {
				behind[i] += len(way)
				break
			}
			if i, ok := on[at]; ok {
				all, behind = append(all, way[i:]), append(behind, i)
				break
			}
			on[at] = len(way)
			l := g.why(at)
			way = append(way, l)
			at = l.to
		}
		cycle := len(all) - 1
		if i, ok := in[at]; ok {
			cycle = i
		}
		for _, l := range way {
			in[l.from] = cycle
		}
	}
	return all, behind
}

// both returns the waits and holds that two readings of the ledger have in common, so that all of these existed at one
// moment between the readings. Otherwise a Deadlock could consist of waits and locks that never existed at the same time.
// A request that went to another actor and back between the readings is not noticed.
func both(waits, waits2 []ledger.Wait, holds, holds2 []ledger.Held) ([]ledger.Wait, []ledger.Held) {
	still := map[uint64]bool{}
	for _, w := range waits2 {
		still[w.Seq] = true
	}
	type hold struct {
		seq uint64
		by  int64 // the goroutine changes if a request is passed on
	}
	left := map[hold]uint64{}
	for _, o := range holds2 {
		for _, h := range o.By {
			left[hold{h.Seq, h.Goroutine}] = h.N
		}
	}
	waits = slices.DeleteFunc(slices.Clone(waits), func(w ledger.Wait) bool { return !still[w.Seq] })
	var kept []ledger.Held
	for _, o := range holds {
		var by []ledger.Hold
		for _, h := range o.By {
			if h.N = min(h.N, left[hold{h.Seq, h.Goroutine}]); h.N > 0 {
				by = append(by, h)
			}
		}
		if len(by) > 0 {
			o.By = by
			kept = append(kept, o)
		}
	}
	return waits, kept
}

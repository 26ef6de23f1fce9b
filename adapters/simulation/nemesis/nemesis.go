// Package nemesis harms the nodes of a World by its seed: partitions, crashes, pauses, wrong clocks, slow disks. One call replaces the loop
// that each test of a cluster would write.
//
//	calm := nemesis.Start(w, nemesis.Options{
//		Nodes: []string{"a", "b", "c"},
//		Boot:  func(n *simulation.Node) { n.Restart(serve) },
//	})
//	_ = suspend.Sleep(ctx, time.Minute)
//	calm() // all is well again
//
// Each seed draws its kinds of faults, how often each kind comes, and a pace ("Swarm Testing", Groce et al., 2012). Otherwise, with all
// kinds in each seed, mistakes would stay hidden that need the absence of a kind: a node that crashes every second has no time to fall
// behind.
package nemesis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/adapters/simulation"
)

// A Kind is a kind of fault, or several.
type Kind uint

// The kinds.
const (
	Partition Kind = 1 << iota // two groups of nodes do not reach each other
	OneWay                     // a node does not reach another node, but is reached by it
	Cut                        // the connections of two nodes break, and they cannot dial each other
	Crash                      // a node crashes, or all of them at once
	PowerOff                   // a node crashes, but its peers get no reset
	Pause                      // the tasks and timers of a node stop
	Skew                       // the clock of a node is wrong, and too fast or too slow
	SlowDisk                   // a Sync takes longer

	all = 1<<iota - 1
)

// Options are the choices of Start. Only Nodes is required.
type Options struct {
	// Nodes are the names of the nodes that are harmed.
	Nodes []string

	// Clients are further nodes, of which only the links to others are harmed.
	Clients []string

	// Boot begins a node again that has crashed, also by itself, by Node.Restart or Node.Start. It must not suspend. If it is nil, no node is
	// crashed.
	Boot func(n *simulation.Node)

	// Every is the mean time between two faults, and a fault lasts four times as long. A seed may be up to four times as slow or as fast.
	// It should be near the timeouts of the program. 0 means 200 ms.
	Every time.Duration

	// Kinds are the faults that may come. 0 means all kinds, but in a World of guests not Pause and Skew, which have no effect on guests.
	Kinds Kind
}

type nemesis struct {
	o     Options
	w     *simulation.World
	rand  *rand.Rand
	bag   []func() fault // strike draws from it; a kind is the likelier, the more often it is in it
	lasts []*fault
	boots map[string]bool // nodes whose boot is set
	over  bool
}

// A fault is all that was drawn for it.
type fault struct {
	what  string // empty if the World itself logs it
	begin func()
	end   func() // a nil end means that a Boot ends the fault
}

// Start begins the faults. They go on until calm, which ends them all, boots the nodes that have crashed, and returns then. A task or a
// guest may call both. If guests hold a sync.Mutex over a Sync, leave SlowDisk out: a long wait for the mutex makes a seed hard to repeat.
func Start(w *simulation.World, o Options) (calm func()) {
	if len(o.Nodes) == 0 {
		panic("nemesis: no Nodes")
	}
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Kinds == 0 {
		o.Kinds = all
		if w.Guests() {
			o.Kinds &^= Pause | Skew
		}
	}
	draw := w.Rand()
	n := &nemesis{o: o, w: w, rand: w.RandOf(rand.NewPCG(draw.Uint64(), draw.Uint64())), boots: map[string]bool{}}
	n.choose()
	n.o.Every = max(1, o.Every<<n.rand.IntN(5)>>2)
	n.next()
	return n.calm
}

// choose fills the bag with some of the kinds that can come.
func (n *nemesis) choose() {
	var can []func() fault
	for _, k := range []struct {
		kind Kind
		with bool
		f    func() fault
	}{
		{Partition, n.links() > 0, n.partition}, {OneWay, n.links() > 0, n.oneWay}, {Cut, n.links() > 0, n.cut},
		{Crash, n.o.Boot != nil, n.crash}, {PowerOff, n.o.Boot != nil, n.powerOff},
		{Pause, true, n.pause}, {Skew, true, n.skew}, {SlowDisk, true, n.slowDisk},
	} {
		if k.with && n.o.Kinds&k.kind != 0 {
			can = append(can, k.f)
		}
	}
	if len(can) == 0 {
		panic("nemesis: no fault can come")
	}
	n.rand.Shuffle(len(can), func(i, j int) { can[i], can[j] = can[j], can[i] })
	for _, f := range can[:1+n.rand.IntN(len(can))] {
		n.bag = append(n.bag, slices.Repeat([]func() fault{f}, 1+n.rand.IntN(4))...)
	}
}

func (n *nemesis) links() int { return len(n.o.Nodes) + len(n.o.Clients) - 1 }

// upTo draws a duration.
func (n *nemesis) upTo(d time.Duration) time.Duration {
	return time.Duration(n.rand.Int64N(int64(d) + 1))
}

// next sets the next fault.
func (n *nemesis) next() {
	n.w.AfterFunc(n.upTo(2*n.o.Every), func() {
		if !n.over {
			n.strike()
			n.reboot()
			n.next()
		}
	})
}

// strike makes a fault, and sets its end.
func (n *nemesis) strike() {
	f := n.bag[n.rand.IntN(len(n.bag))]()
	lasts := time.Duration(0)
	if f.end != nil {
		lasts = n.upTo(8 * n.o.Every)
	}
	if !n.w.Fault("nemesis") {
		return
	}
	f.begin()
	if f.what != "" {
		n.w.Log("nemesis: %s", f.what)
	}
	if f.end != nil {
		n.lasts = append(n.lasts, &f)
		n.w.AfterFunc(lasts, func() { n.end(&f) })
	}
}

func (n *nemesis) end(f *fault) {
	if i := slices.Index(n.lasts, f); i >= 0 {
		n.lasts = slices.Delete(n.lasts, i, i+1)
		n.w.Log("nemesis: no more: %s", f.what)
		f.end()
	}
}

// reboot sets the boots of the nodes that have crashed.
func (n *nemesis) reboot() {
	for _, node := range n.nodes() {
		if n.o.Boot != nil && node.Crashed() && !n.boots[node.Name()] {
			n.boots[node.Name()] = true
			n.w.AfterFunc(n.upTo(8*n.o.Every), func() {
				n.boots[node.Name()] = false
				if !n.over {
					n.boot(node)
				}
			})
		}
	}
}

func (n *nemesis) boot(node *simulation.Node) {
	if node.Crashed() {
		n.o.Boot(node)
	}
}

// calm is called by a task or a guest. A guest must not touch n before its first call of the World, which orders the accesses.
func (n *nemesis) calm() {
	n.w.Log("nemesis: the end")
	n.over = true
	for len(n.lasts) > 0 {
		n.end(n.lasts[0])
	}
	for _, node := range n.nodes() {
		if n.o.Boot != nil {
			n.boot(node)
		}
	}
	n.w.Log("nemesis: all is well")
}

func (n *nemesis) nodes() (all []*simulation.Node) {
	for _, name := range n.o.Nodes {
		all = append(all, n.w.Node(name))
	}
	return all
}

func (n *nemesis) node() *simulation.Node { return n.w.Node(n.o.Nodes[n.rand.IntN(len(n.o.Nodes))]) }

// some draws names in another order.
func (n *nemesis) some() []string {
	names := slices.Concat(n.o.Nodes, n.o.Clients)
	n.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func (n *nemesis) partition() fault {
	names := n.some()
	at := 1 + n.rand.IntN(len(names)-1)
	var held []*simulation.Link
	for _, a := range names[:at] {
		for _, b := range names[at:] {
			held = append(held, n.w.Link(a, b))
		}
	}
	what := fmt.Sprintf("%s and %s do not reach each other", strings.Join(names[:at], ", "), strings.Join(names[at:], ", "))
	return fault{what, func() {
		for _, l := range held {
			l.Hold()
		}
	}, func() {
		for _, l := range held {
			l.Heal()
		}
	}}
}

func (n *nemesis) oneWay() fault {
	names := n.some()
	l := n.w.Link(names[0], names[1])
	return fault{names[0] + " does not reach " + names[1], func() { l.HoldFrom(names[0]) }, l.Heal}
}

func (n *nemesis) cut() fault {
	names := n.some()
	l := n.w.Link(names[0], names[1])
	return fault{names[0] + " and " + names[1] + " are cut off from each other", l.Cut, l.Heal}
}

func (n *nemesis) crash() fault {
	if n.rand.IntN(8) > 0 {
		return fault{begin: n.node().Crash}
	}
	return fault{what: "all nodes have crashed", begin: func() {
		for _, node := range n.nodes() {
			node.Crash()
		}
	}}
}

func (n *nemesis) powerOff() fault {
	return fault{begin: n.node().PowerOff}
}

func (n *nemesis) pause() fault {
	node := n.node()
	return fault{node.Name() + " is paused", node.Pause, node.Resume}
}

func (n *nemesis) skew() fault {
	node, offset, rate := n.node(), n.upTo(32*n.o.Every)-16*n.o.Every, 0.5+n.rand.Float64()
	what := fmt.Sprintf("the clock of %s is off by %v, and %.2f times as fast", node.Name(), offset, rate)
	return fault{what, func() { node.Skew(offset, rate) }, func() { node.Skew(0, 1) }}
}

func (n *nemesis) slowDisk() fault {
	node, most := n.node(), n.upTo(4*n.o.Every)
	what := fmt.Sprintf("a Sync of %s takes up to %v longer", node.Name(), most)
	return fault{what, func() { node.SlowDisk(most) }, func() { node.SlowDisk(0) }}
}

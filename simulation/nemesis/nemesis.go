// Package nemesis injects faults into the nodes of a simulation.World: partitions, crashes, pauses, wrong clocks and slow disks. The
// World's seed decides which faults occur, and when. One call replaces the loop that every test of a cluster would otherwise contain.
//
//	calm := nemesis.Start(w, nemesis.Options{
//		Nodes: []string{"a", "b", "c"},
//		Boot:  func(n *simulation.Node) { n.Restart(serve) },
//	})
//	_ = suspend.Sleep(ctx, time.Minute)
//	calm() // all is well again
//
// Each seed selects some kinds of faults, the frequency of each kind, and a pace ("Swarm Testing", Groce et al., 2012). If every seed used
// all kinds, bugs that need the absence of a kind would stay hidden: a node that crashes every second never has time to fall behind.
package nemesis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
)

// A Kind is a kind of fault, or a set of kinds.
type Kind uint

// The kinds of faults.
const (
	Partition Kind = 1 << iota // two groups of nodes cannot reach each other
	OneWay                     // a node cannot reach another node, but the other node can reach it
	Cut                        // the connections between two nodes break, and neither node can dial the other
	Crash                      // a node crashes, or all nodes crash at once
	PowerOff                   // a node crashes, but its peers get no reset
	Pause                      // the tasks and timers of a node stop for a while
	Skew                       // a node's clock shows a wrong time, and runs too fast or too slow
	SlowDisk                   // each Sync of a node's disk takes longer
	FullDisk                   // a node's disk is full; many programs end then, so it must be chosen by Options.Kinds
	RotDisk                    // sectors of a node's disk rot, for programs with checksums; it must be chosen by Options.Kinds

	all = 1<<iota - 1
)

// Options configure Start. Only Nodes is required.
type Options struct {
	// Nodes are the names of the nodes that suffer faults. A name that no node uses fails a simulation.Test at its end.
	Nodes []string

	// Clients are the names of further nodes. Only their links to other nodes suffer faults.
	Clients []string

	// Boot restarts a node that has crashed for any reason, with Node.Restart or Node.Start. Boot must not suspend. If Boot is nil, no node
	// is crashed.
	Boot func(n *simulation.Node)

	// Every is the mean time between two faults. A fault lasts four times Every on average. Each seed multiplies Every by a factor from 1/4
	// to 4. Choose a value near the program's timeouts, or half of that for mistakes that need a crash at a certain moment, such as between
	// two writes. 0 means 200 ms.
	Every time.Duration

	// Kinds are the kinds of faults that may occur. 0 means all kinds except FullDisk and RotDisk. In a World with guests, 0 also excepts
	// Pause and Skew, which have no effect on guests. Start panics if a kind is unknown.
	Kinds Kind
}

type nemesis struct {
	o     Options
	w     *simulation.World
	rand  *rand.Rand
	bag   []func() fault // n.strike draws a fault from this field; a kind that occurs several times is more likely
	lasts []*fault
	boots map[string]bool // nodes that a timer will boot
	over  bool
}

// A fault is a planned fault, for which all random draws have been made.
type fault struct {
	what  string // the text for the log; empty if the World itself logs the fault
	begin func()
	end   func() // a nil end means that a Boot ends the fault
}

// Start injects faults into w until the returned function is called. This function ends all faults, boots the crashed nodes, and then
// returns. Tasks and guests may call Start and the returned function. Omit SlowDisk if guests hold a sync.Mutex during a Sync: a long wait
// for the mutex makes a seed hard to repeat.
func Start(w *simulation.World, o Options) (calm func()) {
	if len(o.Nodes) == 0 {
		panic("nemesis: no Nodes")
	}
	if o.Kinds > all {
		panic("nemesis: unknown Kind")
	}
	if o.Every <= 0 {
		o.Every = 200 * time.Millisecond
	}
	if o.Kinds == 0 {
		o.Kinds = all &^ (FullDisk | RotDisk)
		if suspend.Current() == nil { // the caller is a guest, since without Options.Guests it would be a task
			o.Kinds &^= Pause | Skew
		}
	}
	draw := w.Rand()
	n := &nemesis{o: o, w: w, rand: w.RandOf(rand.NewPCG(draw.Uint64(), draw.Uint64())), boots: map[string]bool{}}
	kinds := n.choose()
	n.o.Every = max(1, o.Every<<n.rand.IntN(5)>>2)
	w.Log("nemesis: every %v or so a fault: %s", n.o.Every, strings.Join(kinds, ", "))
	n.scheduleFault()
	return n.calm
}

// choose fills the bag with a random selection of the kinds that can occur, and returns their names.
func (n *nemesis) choose() (names []string) {
	type kind struct {
		kind Kind
		name string
		with bool
		f    func() fault
	}
	var can []kind
	for _, k := range []kind{
		{Partition, "partition", n.links() > 0, n.partition}, {OneWay, "one way", n.links() > 0, n.oneWay}, {Cut, "cut", n.links() > 0, n.cut},
		{Crash, "crash", n.o.Boot != nil, n.crash}, {PowerOff, "power off", n.o.Boot != nil, n.powerOff},
		{Pause, "pause", true, n.pause}, {Skew, "skew", true, n.skew}, {SlowDisk, "slow disk", true, n.slowDisk},
		{FullDisk, "full disk", true, n.fullDisk}, {RotDisk, "rotting disk", true, n.rotDisk},
	} {
		if k.with && n.o.Kinds&k.kind != 0 {
			can = append(can, k)
		}
	}
	if len(can) == 0 {
		panic("nemesis: none of the Kinds is possible")
	}
	n.rand.Shuffle(len(can), func(i, j int) { can[i], can[j] = can[j], can[i] })
	for _, k := range can[:1+n.rand.IntN(len(can))] {
		n.bag = append(n.bag, slices.Repeat([]func() fault{k.f}, 1+n.rand.IntN(4))...)
		names = append(names, k.name)
	}
	return names
}

func (n *nemesis) links() int { return len(n.o.Nodes) + len(n.o.Clients) - 1 }

// upTo returns a random duration from 0 to d.
func (n *nemesis) upTo(d time.Duration) time.Duration {
	return time.Duration(n.rand.Int64N(int64(d) + 1))
}

// scheduleFault sets a timer for the next fault.
func (n *nemesis) scheduleFault() {
	n.w.AfterFunc(n.upTo(2*n.o.Every), func() {
		if !n.over {
			n.strike()
			n.reboot()
			n.scheduleFault()
		}
	})
}

// strike begins a random fault, and sets a timer that ends the fault.
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
		n.w.AfterFunc(lasts, func() { n.endFault(&f) })
	}
}

func (n *nemesis) endFault(f *fault) {
	if i := slices.Index(n.lasts, f); i >= 0 {
		n.lasts = slices.Delete(n.lasts, i, i+1)
		n.w.Log("nemesis: no more: %s", f.what)
		f.end()
	}
}

// reboot sets a timer for each node that has crashed; the timer boots the node.
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

// calm ends all faults, and boots the crashed nodes. The caller is a task or a guest. The call of Log comes first, because a call of the
// World orders the accesses of a guest to n.
func (n *nemesis) calm() {
	n.w.Log("nemesis: the end")
	n.over = true
	for len(n.lasts) > 0 {
		n.endFault(n.lasts[0])
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

// some returns the names of all nodes in random order.
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
	return fault{names[0] + " does not reach " + names[1], func() { l.Hold(names[0]) }, l.Heal}
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

func (n *nemesis) fullDisk() fault {
	node := n.node()
	return fault{"the disk of " + node.Name() + " is full", func() { node.FullDisk(true) }, func() { node.FullDisk(false) }}
}

func (n *nemesis) rotDisk() fault {
	node, p := n.node(), n.rand.Float64()/100
	return fault{"the disk of " + node.Name() + " rots", func() { node.RotDisk(p) }, func() { node.RotDisk(0) }}
}

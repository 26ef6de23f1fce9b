package simulation

import (
	"slices"
	"time"
)

// Faults are the properties of links and disks. The zero Faults are a network without latency, and nothing fails.
type Faults struct {
	// The latency of each segment is drawn between these two.
	MinLatency, MaxLatency time.Duration

	// Tail is the probability of a segment to take twice as long, then to take twice as long again, and so on.
	Tail float64

	// Bandwidth is in bytes a second, for each direction. 0 means no limit.
	Bandwidth int

	// Loss and Double are the probabilities of each datagram to be lost, and to arrive twice.
	Loss, Double float64

	// Reset is the probability of each segment to break its connection, and Refuse the probability of each Dial to be refused.
	Reset, Refuse float64

	// Write and Sync are the probabilities of each call on a disk to fail.
	Write, Sync float64

	// MaxSync is how long a Sync of a disk may take. 0 means no time.
	MaxSync time.Duration
}

// A Link is the way between two nodes, in both directions.
type Link struct {
	w      *World
	ends   pair
	faults *Faults // nil means the World's faults
	held   [2]bool // the directions on hold: from the first of ends, and from the second
	cut    bool
	queue  []*segment       // sent while held
	dials  []*dial          // under way
	free   [2]time.Duration // when the last byte sent leaves, for each direction
}

// A pair names the ends of a Link, in order.
type pair struct{ a, b string }

// Link returns the link between two nodes, in any order, the same each time.
func (w *World) Link(a, b string) (l *Link) {
	w.do(func() { l = w.link(a, b) })
	return l
}

func (w *World) link(a, b string) *Link {
	p := pair{min(a, b), max(a, b)}
	l := w.links[p]
	if l == nil {
		if w.links == nil {
			w.links = map[pair]*Link{}
		}
		l = &Link{w: w, ends: p}
		w.links[p] = l
		w.all = append(w.all, l)
	}
	return l
}

// SetFaults sets the faults of all disks, and of all links for which Link.SetFaults was not called.
func (w *World) SetFaults(f Faults) { w.do(func() { w.base = f }) }

// SetFaults sets the faults of l, which count instead of the World's faults.
func (l *Link) SetFaults(f Faults) { l.w.do(func() { l.faults = &f }) }

// Hold keeps all that is sent from now on until Heal: a network that loses segments, under a TCP that repeats them. The end of
// a connection that has had something on hold for 15 minutes fails with ETIMEDOUT: bytes, the end of its direction, or the
// news of room for its Write. A Dial waits for the Heal until its context is done, and two minutes at most.
func (l *Link) Hold() { l.w.do(func() { l.hold([2]bool{true, true}) }) }

func (l *Link) hold(of [2]bool) {
	l.held = [2]bool{l.held[0] || of[0], l.held[1] || of[1]}
	l.band("on hold", true)
}

// HoldFrom is Hold only in the direction from the node: a network that is broken in one direction. It panics if the node is no end of l.
func (l *Link) HoldFrom(node string) {
	of := [2]bool{node == l.ends.a, node == l.ends.b}
	if of == [2]bool{} {
		panic("simulation: HoldFrom a node that is no end of the Link")
	}
	l.w.do(func() { l.hold(of) })
}

// Cut breaks the connections over l with ECONNRESET, both ends at once. Until Heal a Dial fails with EHOSTUNREACH after three seconds, and
// a Dial under way three seconds after the Cut.
func (l *Link) Cut() { l.w.do(l.sever) }

func (l *Link) sever() {
	l.cut, l.queue = true, nil
	l.band("cut", true)
	for _, h := range l.w.hosts[1:] {
		for _, c := range h.spawner.(*Node).conns {
			if c.link == l {
				c.sever()
			}
		}
	}
	for _, d := range l.dials {
		d.cut()
	}
}

// unsend drops the segments of n that are on hold: n does not repeat them any more.
func (w *World) unsend(n *Node) {
	for _, l := range w.all {
		l.queue = slices.DeleteFunc(l.queue, func(s *segment) bool {
			return [...]string{l.ends.a, l.ends.b}[s.path.way] == n.name
		})
	}
}

// Heal ends Hold and Cut. All that was held is sent, in order.
func (l *Link) Heal() { l.w.do(l.heal) }

func (l *Link) heal() {
	l.held, l.cut = [2]bool{}, false
	l.band("on hold", false)
	l.band("cut", false)
	queue := l.queue
	l.queue = nil
	for _, s := range queue {
		l.w.discard(s.waits.held)
		s.waits.held = nil
		l.transmit(s)
	}
}

// Partition holds the links between nodes of different groups, and heals all others. The nodes that no group names are
// one more group. Nodes that are made later reach all others.
func (w *World) Partition(groups ...[]string) { w.do(func() { w.partition(groups) }) }

func (w *World) partition(groups [][]string) {
	of := map[string]int{}
	for i, g := range groups {
		for _, name := range g {
			w.Node(name)
			of[name] = i + 1
		}
	}
	for i, a := range w.hosts[1:] {
		for _, b := range w.hosts[i+2:] {
			if l := w.link(a.name, b.name); of[a.name] != of[b.name] {
				l.hold([2]bool{true, true})
			} else {
				l.heal()
			}
		}
	}
}

// Heal heals all links.
func (w *World) Heal() {
	w.do(func() {
		for _, l := range w.all {
			l.heal()
		}
	})
}

func (l *Link) now() *Faults {
	if l.faults != nil {
		return l.faults
	}
	return &l.w.base
}

// A segment is a piece of data on its way over a link. do is called when it arrives.
type segment struct {
	path  *path
	waits *Conn // fails if the segment is on hold for too long
	size  int
	do    func()
}

// A path is one direction of a connection, or of a Dial. Its segments arrive in order.
type path struct {
	link  *Link
	way   int           // direction
	last  time.Duration // the arrival of the last segment
	draws *source
}

const holdTimeout = 15 * time.Minute

// send calls do at the other end. waits is the end that fails if the segment is on hold for too long.
func (p *path) send(waits *Conn, size int, do func()) {
	l := p.link
	s := &segment{path: p, waits: waits, size: size, do: do}
	if !l.held[p.way] {
		l.transmit(s)
		return
	}
	l.queue = append(l.queue, s)
	waits.repeat()
}

// transmit sets the timer of the arrival.
func (l *Link) transmit(s *segment) {
	w, f, p := l.w, l.now(), s.path
	w.pass()
	leaves, latency := l.leaves(p.way, s.size), f.latency(p.draws)
	p.last = max(p.last, plus(leaves, latency))
	w.after(p.last-w.now, nil, s.do)
}

// leaves returns when the last of size more bytes leaves.
func (l *Link) leaves(way, size int) time.Duration {
	leaves, f := l.w.now, l.now()
	if f.Bandwidth > 0 && size > 0 {
		leaves = max(leaves, l.free[way]) + time.Duration(float64(size)/float64(f.Bandwidth)*float64(time.Second))
		l.free[way] = leaves
	}
	return leaves
}

// latency draws the latency of a segment.
func (f *Faults) latency(draws *source) time.Duration {
	latency := f.MinLatency
	if spread := f.MaxLatency - f.MinLatency; spread > 0 {
		latency += draws.upTo(spread)
	}
	for latency > 0 && latency < 24*time.Hour && draws.chance(f.Tail) {
		latency *= 2
	}
	return latency
}

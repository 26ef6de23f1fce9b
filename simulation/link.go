package simulation

import (
	"slices"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// Faults are the properties of links and disks. With the zero Faults the network has no latency, and nothing fails.
type Faults struct {
	// The latency of each segment is drawn from the range between MinLatency and MaxLatency.
	MinLatency, MaxLatency time.Duration

	// Tail is the probability that a segment's latency doubles. After each doubling, Tail is also the probability of the next doubling.
	Tail float64

	// Bandwidth is the number of bytes per second in each direction. 0 means no limit.
	Bandwidth int

	// Loss is the probability that a datagram is lost, and Double is the probability that a datagram arrives twice.
	Loss, Double float64

	// Reset is the probability that a segment breaks its connection, and Refuse is the probability that a Dial is refused.
	Reset, Refuse float64

	// Write is the probability that a write to a disk fails, and Sync is the probability that a Sync fails.
	Write, Sync float64

	// MaxSync is the longest time that a Sync of a disk takes. 0 means that a Sync takes no time.
	MaxSync time.Duration
}

// A Link is the network between two nodes, in both directions.
type Link struct {
	w      *World
	ends   pair
	faults *Faults // the faults of this link, or nil if the World's faults apply
	held   [2]bool // the directions on hold: from ends.a, and from ends.b
	cut    bool
	queue  []*segment       // the segments that were sent while the link was on hold
	dials  []*pendingDial   // the dials in progress
	free   [2]time.Duration // the time at which each direction is free for the next byte
}

// A pair holds the names of the two nodes of a Link, sorted.
type pair struct{ a, b string }

// Link returns the link between the nodes a and b. The order of a and b does not matter, and each call returns the same Link.
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

// SetFaults sets the faults of l, which replace the World's faults for this link.
func (l *Link) SetFaults(f Faults) { l.w.do(func() { l.faults = &f }) }

// Hold keeps all segments that are sent over l from now on, until Heal. It simulates a network that loses segments, under a TCP that
// retransmits. One end of a connection fails with ETIMEDOUT after 15 minutes on hold, if its bytes, its close, or a window update for its
// Write cannot arrive. A Dial waits for Heal until its context is cancelled, but for at most two minutes.
//
// With the name of a node, Hold keeps only the segments that this node sends: the network is broken in one direction. Hold panics if the
// node is not an end of l.
func (l *Link) Hold(from ...string) {
	of := [2]bool{slices.Contains(from, l.ends.a), slices.Contains(from, l.ends.b)}
	switch {
	case len(from) == 0:
		of = [2]bool{true, true}
	case of == [2]bool{}:
		panic("simulation: Hold from a node that is no end of the Link")
	}
	l.w.do(func() { l.hold(of) })
}

func (l *Link) hold(of [2]bool) {
	l.held = [2]bool{l.held[0] || of[0], l.held[1] || of[1]}
	l.band("on hold", true)
}

func (l *Link) band(what string, begins bool) {
	if begins {
		l.w.hit(l.ends.a)
		l.w.hit(l.ends.b)
	}
	if a, b := l.w.nodes[l.ends.a], l.w.nodes[l.ends.b]; a != nil && b != nil {
		l.w.band(&a.host, &b.host, what, begins)
	}
}

// Cut breaks both ends of each connection over l with ECONNRESET. Until Heal, a Dial fails with EHOSTUNREACH after three seconds. A Dial in
// progress fails three seconds after the Cut.
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

// unsend drops the segments from n that are on hold, because n no longer repeats them.
func (w *World) unsend(n *Node) {
	for _, l := range w.all {
		l.queue = slices.DeleteFunc(l.queue, func(s *segment) bool {
			return [...]string{l.ends.a, l.ends.b}[s.path.way] == n.name
		})
	}
}

// Heal ends the effects of Hold and Cut. It sends the segments that were on hold, in order.
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

// Partition puts the links between nodes of different groups on hold, and heals all other links. Nodes that are in none of the groups form
// another group. Nodes that are created later reach all nodes.
func (w *World) Partition(groups ...[]string) { w.do(func() { w.partition(groups) }) }

func (w *World) partition(groups [][]string) {
	of := map[string]int{}
	for i, g := range groups {
		for _, name := range g {
			w.Node(name)
			w.hit(name)
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

// A segment is a piece of data in transit over a link. When it arrives, the World calls do().
type segment struct {
	path  *path
	waits *conn // the end that fails if the segment is on hold for too long
	size  int
	do    func()
}

// A path is one direction of a connection, or of a Dial. Its segments arrive in order.
type path struct {
	link  *Link
	way   int           // the direction, an index into Link.held
	last  time.Duration // the time at which the last segment arrives
	draws *draws.Source
}

const holdTimeout = 15 * time.Minute

// send sends a segment of size bytes. When the segment arrives, do() is called. If the segment is on hold for too long, the end of the
// connection that was passed as waits fails.
func (p *path) send(waits *conn, size int, do func()) {
	l := p.link
	s := &segment{path: p, waits: waits, size: size, do: do}
	if !l.held[p.way] {
		l.transmit(s)
		return
	}
	l.queue = append(l.queue, s)
	waits.repeat()
}

// transmit sets the timer for the arrival of s.
func (l *Link) transmit(s *segment) {
	w, f, p := l.w, l.now(), s.path
	w.pass()
	leaves, latency := l.leaves(p.way, s.size), f.latency(p.draws)
	p.last = max(p.last, plus(leaves, latency))
	w.after(p.last-w.now, nil, s.do)
}

// leaves returns the time at which the last byte of a segment of the given size leaves the sender.
func (l *Link) leaves(way, size int) time.Duration {
	leaves, f := l.w.now, l.now()
	if f.Bandwidth > 0 && size > 0 {
		leaves = max(leaves, l.free[way]) + time.Duration(float64(size)/float64(f.Bandwidth)*float64(time.Second))
		l.free[way] = leaves
	}
	return leaves
}

// latency draws the latency of a segment.
func (f *Faults) latency(draws *draws.Source) time.Duration {
	latency := f.MinLatency
	if spread := f.MaxLatency - f.MinLatency; spread > 0 {
		latency += draws.UpTo(spread)
	}
	for latency > 0 && latency < 24*time.Hour && draws.Chance(f.Tail) {
		latency *= 2
	}
	return latency
}

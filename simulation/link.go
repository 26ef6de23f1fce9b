package simulation

import (
	"time"

	"github.com/braidgo/braid/simulation/internal/network"
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
	w     *World
	ends  pair
	wire  network.Wire         // its ways are 0 from ends.a, and 1 from ends.b
	dials []interface{ cut() } // the dials in progress
}

// A pair holds the names of the two nodes of a Link, sorted.
type pair struct{ a, b string }

// Link returns the link between the nodes a and b. The order of a and b does not matter, and each call returns the same Link.
func (w *World) Link(a, b string) (l *Link) {
	w.do(func() { l = w.links.between(w, a, b) })
	return l
}

// links are the Links of a World.
type links struct {
	of     map[pair]*Link
	all    []*Link
	faults faults
	conns  int // the number of ends of connections and sockets so far
}

func (s *links) between(w *World, a, b string) *Link {
	p := pair{min(a, b), max(a, b)}
	l := s.of[p]
	if l == nil {
		if s.of == nil {
			s.of = map[pair]*Link{}
		}
		l = &Link{w: w, ends: p, wire: network.Wire{Clock: &w.clock, Faults: &s.faults.wires}}
		s.of[p] = l
		s.all = append(s.all, l)
	}
	return l
}

// SetFaults sets the faults of all disks, and of all links for which Link.SetFaults was not called.
func (w *World) SetFaults(f Faults) { w.do(func() { w.links.faults = faults{f, f.wire()} }) }

// SetFaults sets the faults of l, which replace the World's faults for this link.
func (l *Link) SetFaults(f Faults) {
	own := f.wire()
	l.w.do(func() { l.wire.Faults = &own })
}

// faults are the World's faults, which hold for all disks, and for all links without faults from Link.SetFaults.
type faults struct {
	Faults
	wires network.Faults
}

func (f *Faults) wire() network.Faults {
	return network.Faults{MinLatency: f.MinLatency, MaxLatency: f.MaxLatency, Tail: f.Tail, Bandwidth: f.Bandwidth,
		Loss: f.Loss, Double: f.Double, Reset: f.Reset, Refuse: f.Refuse}
}

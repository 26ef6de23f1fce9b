// Package network has the wires of a simulated network. A Wire carries segments between two nodes, in both directions, with latency, a
// bandwidth and faults. The content of a
// segment does not matter: the caller passes the size, and the function to call at the arrival.
//
// A Wire has neither a clock nor a random source. It needs a Clock that calls a function later, and each Path draws from a source that the
// caller chooses.
package network

import (
	"slices"
	"time"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/simulation/internal/saturate"
)

// A Clock calls functions at virtual times.
type Clock interface {
	Now() time.Duration
	After(d time.Duration, f func())
}

// Faults are the properties of a Wire. See simulation.Faults for their units.
type Faults struct {
	MinLatency, MaxLatency time.Duration
	Tail                   float64
	Bandwidth              int
	Loss, Double           float64
	Reset, Refuse          float64
}

// A Wire is the network between two nodes. A direction, called way, is 0 or 1.
type Wire struct {
	Clock  Clock
	Faults *Faults
	held   [2]bool
	cut    bool
	queue  []*segment       // the segments that were sent while the wire was on hold
	free   [2]time.Duration // the time at which each direction is free for the next byte
}

// A Sender waits for the arrival of a segment.
type Sender interface {
	Waits() // the segment is on hold
	Goes()  // the segment is on hold no longer
}

// A Path is one direction of a connection. Its segments arrive in order.
type Path struct {
	Wire  *Wire
	Way   int
	Draws *draws.Source
	last  time.Duration // the time at which the last segment arrives
}

// A segment is a piece of data in transit. When it arrives, the Clock calls do().
type segment struct {
	path *Path
	from Sender
	size int
	do   func()
}

// Send sends a segment of size bytes. When the segment arrives, do() is called. If the segment is on hold, the Sender from learns of it.
func (p *Path) Send(from Sender, size int, do func()) {
	s := &segment{path: p, from: from, size: size, do: do}
	if !p.Wire.held[p.Way] {
		p.transmit(s)
		return
	}
	p.Wire.queue = append(p.Wire.queue, s)
	from.Waits()
}

// transmit sets the timer for the arrival of s.
func (p *Path) transmit(s *segment) {
	w := p.Wire
	now := w.Clock.Now()
	leaves, latency := w.leaves(now, p.Way, s.size), w.Faults.latency(p.Draws)
	p.last = max(p.last, saturate.Plus(leaves, latency))
	w.Clock.After(p.last-now, s.do)
}

// SendAlone sends a datagram of size bytes. It may overtake other datagrams.
func (w *Wire) SendAlone(way, size int, draws *draws.Source, do func()) {
	now := w.Clock.Now()
	arrives := saturate.Plus(w.leaves(now, way, size), w.Faults.latency(draws))
	w.Clock.After(arrives-now, do)
}

// leaves returns the time at which the last byte of a segment of the given size leaves the sender.
func (w *Wire) leaves(now time.Duration, way, size int) time.Duration {
	if w.Faults.Bandwidth > 0 && size > 0 {
		now = max(now, w.free[way]) + time.Duration(float64(size)/float64(w.Faults.Bandwidth)*float64(time.Second))
		w.free[way] = now
	}
	return now
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

// Hold keeps the segments that are sent in these directions, until Heal.
func (w *Wire) Hold(ways [2]bool) {
	w.held = [2]bool{w.held[0] || ways[0], w.held[1] || ways[1]}
}

// Cut loses all segments on hold. Until Heal, IsCut returns true.
func (w *Wire) Cut() { w.cut, w.queue = true, nil }

// IsCut reports whether w is cut.
func (w *Wire) IsCut() bool { return w.cut }

// Blocks reports whether w is cut, or on hold in this direction.
func (w *Wire) Blocks(way int) bool { return w.cut || w.held[way] }

// Drop loses the segments on hold in this direction.
func (w *Wire) Drop(way int) {
	w.queue = slices.DeleteFunc(w.queue, func(s *segment) bool { return s.path.Way == way })
}

// Heal ends the effects of Hold and Cut. It sends the segments that were on hold, in order.
func (w *Wire) Heal() {
	w.held, w.cut = [2]bool{}, false
	queue := w.queue
	w.queue = nil
	for _, s := range queue {
		s.from.Goes()
		s.path.transmit(s)
	}
}

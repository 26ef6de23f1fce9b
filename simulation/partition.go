package simulation

import "slices"

// This file has the faults of links: Hold, Cut, Partition, and Heal, which ends them.

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
		panic("simulation: Hold with a node that is not an end of the Link")
	}
	l.w.do(func() { l.hold(of) })
}

func (l *Link) hold(of [2]bool) {
	l.wire.Hold(of)
	l.band("on hold", true)
}

func (l *Link) band(what string, begins bool) {
	if begins {
		l.w.hit(l.ends.a)
		l.w.hit(l.ends.b)
	}
	if a, b := l.w.nodes[l.ends.a], l.w.nodes[l.ends.b]; a != nil && b != nil {
		l.w.band(l.w.clock.now, &a.place, &b.place, what, begins)
	}
}

// Cut breaks both ends of each connection over l with ECONNRESET. Until Heal, a Dial fails with EHOSTUNREACH after three seconds. A Dial in
// progress fails three seconds after the Cut.
func (l *Link) Cut() { l.w.do(l.sever) }

func (l *Link) sever() {
	l.wire.Cut()
	l.band("cut", true)
	for _, h := range l.w.hosts[1:] {
		for _, c := range h.spawner.(*Node).conns {
			c.cut(&l.wire)
		}
	}
	for _, d := range l.dials {
		d.cut()
	}
}

// Heal ends the effects of Hold and Cut. It sends the segments that were on hold, in order.
func (l *Link) Heal() { l.w.do(l.heal) }

func (l *Link) heal() {
	l.band("on hold", false)
	l.band("cut", false)
	l.wire.Heal()
}

// Partition puts the links between nodes of different groups on hold, and heals all other links. Nodes that are in none of the groups form
// another group. Nodes that are created later reach all nodes.
func (w *World) Partition(groups ...[]string) {
	w.do(func() {
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
				if l := w.links.between(w, a.name, b.name); of[a.name] != of[b.name] {
					l.hold([2]bool{true, true})
				} else {
					l.heal()
				}
			}
		}
	})
}

// Heal heals all links.
func (w *World) Heal() {
	w.do(func() {
		for _, l := range w.links.all {
			l.heal()
		}
	})
}

package network

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation/internal/draws"
)

// clock is a Clock that a test advances.
type clock struct {
	now time.Duration
	set []call
}

type call struct {
	at time.Duration
	f  func()
}

func (c *clock) Now() time.Duration { return c.now }

func (c *clock) After(d time.Duration, f func()) { c.set = append(c.set, call{c.now + d, f}) }

// run calls all functions in the order of their times, and returns the times.
func (c *clock) run() (times []time.Duration) {
	for len(c.set) > 0 {
		slices.SortStableFunc(c.set, func(a, b call) int { return cmp.Compare(a.at, b.at) })
		next := c.set[0]
		c.set = c.set[1:]
		c.now = max(c.now, next.at)
		times = append(times, next.at)
		next.f()
	}
	return times
}

// sender counts the segments on hold.
type sender struct{ waits, goes int }

func (s *sender) Waits() { s.waits++ }
func (s *sender) Goes()  { s.goes++ }

// rig has a Wire, and a Path in each direction.
type rig struct {
	clock
	Wire
	sender
	draws   draws.Source
	paths   [2]Path
	arrived []string
}

func newRig(f Faults) *rig {
	r := &rig{draws: 1}
	r.Wire = Wire{Clock: &r.clock, Faults: &f}
	for way := range r.paths {
		r.paths[way] = Path{Wire: &r.Wire, Way: way, Draws: &r.draws}
	}
	return r
}

func (r *rig) send(way, size int, names ...string) {
	for _, name := range names {
		r.paths[way].Send(&r.sender, size, func() { r.arrived = append(r.arrived, name) })
	}
}

// Segments of a Path arrive in order, though each has its own latency; datagrams do not.
func TestOrder(t *testing.T) {
	r := newRig(Faults{MinLatency: time.Second, MaxLatency: time.Minute})
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprint(i))
	}
	r.send(0, 1, want...)
	times := r.run()
	require.Equal(t, want, r.arrived)
	require.GreaterOrEqual(t, times[0], time.Second)
	require.LessOrEqual(t, times[19], time.Minute)
	r.arrived = nil
	for _, name := range want {
		r.SendAlone(0, 1, &r.draws, func() { r.arrived = append(r.arrived, name) })
	}
	r.run()
	require.ElementsMatch(t, want, r.arrived)
	require.NotEqual(t, want, r.arrived)
}

// A direction on hold keeps its segments, and notifies their sender. Heal sends them, in order.
func TestHoldAndHeal(t *testing.T) {
	r := newRig(Faults{})
	r.Hold([2]bool{true, false})
	r.send(0, 1, "a", "b")
	r.send(1, 1, "c")
	r.run()
	require.Equal(t, []string{"c"}, r.arrived)
	require.Equal(t, sender{waits: 2}, r.sender)
	require.Equal(t, []bool{true, false}, []bool{r.Blocks(0), r.Blocks(1)})
	r.Heal()
	r.run()
	require.Equal(t, []string{"c", "a", "b"}, r.arrived)
	require.Equal(t, sender{waits: 2, goes: 2}, r.sender)
	require.False(t, r.Blocks(0))
}

// Cut and Drop lose segments on hold, the second only those of its direction.
func TestLostOnHold(t *testing.T) {
	r := newRig(Faults{})
	r.Hold([2]bool{true, true})
	r.send(0, 1, "a")
	r.send(1, 1, "b")
	r.Drop(0)
	r.Heal()
	r.run()
	require.Equal(t, []string{"b"}, r.arrived)
	r.Hold([2]bool{true, true})
	r.send(0, 1, "c")
	r.Cut()
	require.True(t, r.IsCut() && r.Blocks(0) && r.Blocks(1))
	r.Heal()
	r.run()
	require.Equal(t, []string{"b"}, r.arrived)
	require.False(t, r.IsCut())
}

// Each direction has the whole bandwidth for itself, and a segment without bytes needs none.
func TestBandwidth(t *testing.T) {
	r := newRig(Faults{Bandwidth: 10, MinLatency: time.Second})
	r.send(0, 20, "a", "b")
	r.send(0, 0, "fin")
	r.send(1, 20, "c")
	require.Equal(t, []time.Duration{3 * time.Second, 3 * time.Second, 5 * time.Second, 5 * time.Second}, r.run())
	require.Equal(t, []string{"a", "c", "b", "fin"}, r.arrived)
}

// A latency doubles again and again, up to a day.
func TestTail(t *testing.T) {
	source := draws.Source(1)
	require.Equal(t, 32*time.Hour, (&Faults{MinLatency: time.Hour, Tail: 1}).latency(&source))
	require.Equal(t, time.Duration(0), (&Faults{Tail: 1}).latency(&source), "nothing doubles nothing")
	doubled := 0
	for range 1000 {
		if (&Faults{MinLatency: 1, Tail: 0.25}).latency(&source) > 1 {
			doubled++
		}
	}
	require.InDelta(t, 250, doubled, 60)
}

// Without faults, nothing is drawn: the draws for other things do not depend on the network.
func TestNothingIsDrawn(t *testing.T) {
	r := newRig(Faults{MinLatency: time.Second, MaxLatency: time.Second})
	r.send(0, 1, "a")
	require.Equal(t, draws.Source(1), r.draws)
}

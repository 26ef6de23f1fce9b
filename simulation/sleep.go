package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"runtime"
	"slices"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/simulation/internal/saturate"
	"github.com/braidgo/braid/suspend"
)

// prepare prepares w for a run. Run calls it first, on its own goroutine.
func (w *World) prepare() error {
	w.driver = gid.Get()
	if !w.o.Start.IsZero() && (w.o.Bubble || w.guests != nil && !w.o.Start.Equal(time.Now())) { // inGuests has slept until Start, if Start is after 2000
		return errors.New("simulation: Options.Start is set, but the clock of a bubble cannot be changed")
	}
	if w.o.Bubble && bubbleOf() == "" {
		return errors.New("simulation: Options.Bubble is set, but the caller is not in a testing/synctest bubble")
	}
	if w.admits = w.o.open; w.o.open || w.o.Bubble || w.guests != nil {
		w.clock.follow()
	}
	if w.o.open || w.o.Bubble {
		w.parent = suspend.Self()
	}
	return nil
}

// sleep parks Run's caller until a goroutine outside the World calls, or until the alarm for the World's next timer rings. In a bubble, a
// timer of package time may cause such a call. If nothing can happen any more, the run fails with ErrDeadlock.
func (w *World) sleep() {
	switch {
	case w.guests != nil:
		w.guests.sleep()
		return
	case w.parent == nil:
		w.stuck()
		return
	case w.o.open && w.ended && len(w.ready) == 0 && !slices.ContainsFunc(w.hosts, (*host).busy):
		w.over = w.shut()
		return
	}
	w.fallAsleep()
	var rang atomicx.Bool
	d := w.clock.alarm(w.o.MaxTime)
	defer time.AfterFunc(d, func() { // set after fallAsleep, otherwise the alarm could ring while the World is awake
		rang.Store(true)
		w.rouseSelf()
	}).Stop()
	w.park()
	if w.o.Bubble {
		synctest.Wait()
	}
	w.mu.Lock()
	w.admits = w.o.open
	w.mu.Unlock()
	if len(w.clock.timers.heap) == 0 && rang.Load() && !w.called.Load() {
		w.stuck()
		return
	}
	w.clock.pass()
	w.admit()
}

// stuck fails the run with ErrDeadlock, unless a goroutine outside the World has just called.
func (w *World) stuck() {
	if !w.called.Load() {
		w.fail(w.account(ErrDeadlock))
	}
}

// admit accepts the queued calls from outside the World. It sorts these calls by host and task. The order of arrival must not matter,
// otherwise the seed would not repeat.
func (w *World) admit() {
	if !w.called.Load() {
		return
	}
	if w.guests != nil {
		w.called.Store(false)
		w.guests.executeCalls()
		return
	}
	w.mu.Lock()
	in, foreign := w.in, w.foreign
	w.in = nil
	w.called.Store(false)
	w.mu.Unlock()
	if foreign != nil {
		w.fail(foreign)
		return
	}
	if !w.o.open {
		slices.SortStableFunc(in, func(a, b ready) int {
			return cmp.Or(cmp.Compare(a.hostNumber(), b.hostNumber()), cmp.Compare(a.number(), b.number()))
		})
	}
	for _, r := range in {
		r.letIn(w)
	}
}

// waitForBubble waits, in a bubble, until the goroutines that a step has started are blocked, such as goroutines of package context.
func (w *World) waitForBubble() {
	if w.o.Bubble {
		synctest.Wait()
		w.clock.pass()
	}
}

// bubbleOf returns the name of the caller's testing/synctest bubble, or "" if the caller is not in a bubble. Only the first line of the
// caller's stack trace contains the name.
func bubbleOf() string {
	var buf [256]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	at := bytes.Index(head, []byte("synctest bubble"))
	if at < 0 {
		return ""
	}
	return string(head[at:])
}

// The virtual times of a World with guests that has no timers.
const (
	nap           = 10 * time.Minute // the longest sleep
	deadlockAfter = 24 * time.Hour   // after this time without an event, the World assumes a deadlock, although guests may have timers
)

// sleep yields to the driver until the guests have run, or until the World's next timer is due.
func (g *guests) sleep() {
	w := g.w
	g.pausing = !g.woken
	alarm := w.clock.alarm(w.o.MaxTime)
	quiet := len(w.clock.timers.heap) == 0 && w.o.MaxTime == 0 // only guests can end the sleep
	if quiet {
		alarm = nap
	}
	g.woken, g.timeIsUp, g.until = false, false, saturate.Plus(w.clock.now, alarm)
	select {
	case <-g.kick: // a kick that came after the end of the last sleep must not end the next sleep
	default:
	}
	g.yield(struct{}{})
	if g.naps++; !quiet || !g.timeIsUp || w.called.Load() {
		g.naps = 0
	}
	if g.naps*nap >= deadlockAfter {
		w.stuck()
		return
	}
	w.clock.pass()
	w.admit()
}

// executeCalls executes the calls that guests have queued.
func (g *guests) executeCalls() {
	all, conns := g.asked, g.changed
	g.asked, g.changed, g.told = nil, nil, 0
	slices.SortFunc(conns, func(a, b *conn) int { return cmp.Or(a.node.index-b.node.index, a.id-b.id) })
	for _, c := range conns {
		g.w.acting = guestID{&c.node.host, 0}
		c.performAll()
	}
	slices.SortStableFunc(all, func(a, b asked) int { return cmp.Or(a.host.at().number()-b.host.at().number(), a.n-b.n) })
	g.w.steps += len(all) // calls count as steps, otherwise a guest could call forever
	for _, a := range all {
		g.w.acting = a.guestID
		a.f()
	}
	g.w.acting = guestID{}
}

package fetch

import (
	"cmp"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// This file decides when the requests of goroutines outside a Run are sent. A session cannot see whether more requests are
// coming, so the session first gives other goroutines a number of turns. With fewer turns, a crowd of goroutines is split into
// more batches; many more turns gain nothing. On a busy machine, a turn may take a time slice for each goroutine that is ahead
// in the queue. Therefore a timer limits the delay: a processor checks its timers before it looks for a goroutine to run.
const (
	defaultTurns  = 10
	defaultWithin = 300 * time.Microsecond

	// prolongs is the maximum number of times that the timer restarts while a crowd grows. Restarts keep a crowd in one batch
	// more often, but an endless crowd must not delay its waiters forever.
	prolongs = 4
)

// settleLocked starts a settling, which calls d.idle when it ends.
func (d *driver) settleLocked() {
	o := &d.s.opts
	g := &settling{d: d, seen: d.waiters}
	d.settling = g
	turns := cmp.Or(o.Settle, defaultTurns)
	if turns >= 0 && preempt.Explored() { // Explore starts this task at an arbitrary time
		goroutine(g.finish)
		return
	}
	if o.SettleWithin >= 0 {
		g.limit = newLimit(cmp.Or(o.SettleWithin, defaultWithin), g.late)
	}
	if turns >= 0 {
		goroutine(func() { g.yieldTurns(turns) })
	}
}

// yieldTurns gives other goroutines the given number of turns, and then ends the settling.
func (g *settling) yieldTurns(left int) {
	g.d.s.guard.Lock()
	going := g.d.settling == g
	g.d.s.guard.Unlock()
	switch {
	case !going: // the timer has already ended the settling
	case left == 0:
		g.finish()
	default:
		afterOthers(func() { g.yieldTurns(left - 1) })
	}
}

// late is called by the timer. If the crowd has grown, the timer is restarted; otherwise the settling ends.
func (g *settling) late() {
	d := g.d
	d.s.guard.Lock()
	more := d.settling == g && g.seen != d.waiters && g.prolonged < prolongs
	if more {
		g.seen = d.waiters
		g.prolonged++
		g.limit.again(g.late)
	}
	d.s.guard.Unlock()
	if !more {
		g.finish()
	}
}

// finish sends the requests, unless an earlier call has done so.
func (g *settling) finish() {
	d := g.d
	d.s.guard.Lock()
	first := d.settling == g
	if first {
		d.settling = nil // d stays armed until d.idle runs
	}
	d.s.guard.Unlock()
	if first {
		g.limit.stop()
		d.idle()
	}
}

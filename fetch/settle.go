package fetch

import (
	"cmp"
	"runtime"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// This file decides when the requests of goroutines outside a Run are sent. A session cannot see whether more requests are
// coming, so the session first gives other goroutines a number of turns. With fewer turns, a crowd of goroutines is split into
// more batches; many more turns gain nothing. The turns begin again if the crowd has grown. On a busy machine, a turn may take
// a time slice for each goroutine that is ahead in the queue. Therefore a timer limits the delay: a processor checks its timers
// before it looks for a goroutine to run.
//
// A large crowd is treated differently in two ways. First, its timer restarts with a longer time, because each batch saved is
// worth more, and because a crowd of thousands of goroutines needs many milliseconds to arrive. Second, its last turn comes
// after the global run queue, to which a processor moves half of its own queue when this is full.
const (
	defaultTurns  = 10
	defaultWithin = 300 * time.Microsecond

	// prolongs is the maximum number of times that the timer restarts while a crowd grows. Restarts keep a crowd in one batch
	// more often, but an endless crowd must not delay its waiters forever.
	prolongs = 4

	// large is the number of waiters that make a large crowd. It also limits how often the turns begin again, and by how much
	// the timer's time grows.
	large = 32
)

// settleLocked starts a settling, which calls d.idle when it ends.
func (d *driver) settleLocked() {
	o := &d.s.opts
	g := &settling{d: d, seen: d.waiters, met: d.waiters}
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

// yieldTurns gives other goroutines the given number of turns, and then ends the settling, unless the crowd has grown. The turn
// of a large crowd after the global run queue leaves -1.
func (g *settling) yieldTurns(left int) {
	d := g.d
	d.s.guard.Lock()
	going, size := d.settling == g, d.waiters
	more := left <= 0 && g.met != size && g.again < large
	if more {
		g.met = size
		g.again++
	}
	d.s.guard.Unlock()
	switch {
	case !going: // the timer has already ended the settling
	case more:
		left = cmp.Or(d.s.opts.Settle, defaultTurns)
		fallthrough
	case left > 0:
		afterOthers(func() { g.yieldTurns(left - 1) })
	case left == 0 && size >= large:
		runtime.Gosched()
		g.yieldTurns(-1)
	default:
		g.finish()
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
		g.limit.again(min(g.seen, large), g.late)
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
		d.waiters = 0
	}
	d.s.guard.Unlock()
	if first {
		g.limit.stop()
		d.idle()
	}
}

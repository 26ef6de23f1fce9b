package fetch

import (
	"cmp"
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// The requests of goroutines that are no tasks go out when they have settled: whether more are coming cannot be seen. Other goroutines
// get some turns: fewer make more batches of a crowd; many more bring nothing. On a machine that computes, a turn may take as long as
// a goroutine may run, times the number of goroutines that are ahead. So the time has a limit, too: a processor looks at its timers before it
// looks for a goroutine to run.
const (
	defaultTurns  = 10
	defaultWithin = 300 * time.Microsecond

	// prolongs is how often the time is given again, while a crowd grows. A crowd is in one piece more often then, but a crowd
	// without end must not hold up its waiters.
	prolongs = 4
)

// settleLocked arranges for a call of idle.
func (d *driver) settleLocked() {
	o := &d.s.opts
	g := &settling{d: d, seen: d.waiters}
	d.settling = g
	turns := cmp.Or(o.Settle, defaultTurns)
	if turns >= 0 && preempt.Explored() { // the task below begins at any time
		goroutine(g.end)
		return
	}
	if o.SettleWithin >= 0 {
		g.limit = newLimit(cmp.Or(o.SettleWithin, defaultWithin), g.late)
	}
	if turns >= 0 {
		goroutine(func() { g.turn(turns) })
	}
}

// turn lets others run, several times.
func (g *settling) turn(left int) {
	g.d.s.guard.Lock()
	going := g.d.settling == g
	g.d.s.guard.Unlock()
	switch {
	case !going: // the time was over
	case left == 0:
		g.end()
	default:
		afterOthers(func() { g.turn(left - 1) })
	}
}

// late is called when the time is over.
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
		g.end()
	}
}

// end sends the requests, unless that has happened.
func (g *settling) end() {
	d := g.d
	d.s.guard.Lock()
	first := d.settling == g
	if first {
		d.settling = nil // d stays armed until idle
	}
	d.s.guard.Unlock()
	if first {
		g.limit.stop()
		d.idle()
	}
}

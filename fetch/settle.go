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
// worth more, and because a crowd of thousands of goroutines needs many milliseconds to arrive. Second, if the crowd is as
// large as one that has filled a local run queue, its last turn comes after the global run queue, where the rest of it may be.
const (
	defaultTurns  = 10
	defaultWithin = 300 * time.Microsecond

	// prolongs is the maximum number of times that the timer restarts while a crowd grows. Restarts keep a crowd in one batch
	// more often, but an endless crowd must not delay its waiters forever.
	prolongs = 4

	// The timer and its restarts take at most mostTimes × SettleWithin, and at most longest. Only equal restarts, which keep a chain
	// of requests together, may take more: (1 + prolongs) × SettleWithin.
	mostTimes = 32
	longest   = 10 * time.Millisecond

	// repeats is the maximum number of times that the turns begin again while a crowd grows.
	repeats = 32

	// overflow is the size of a crowd that may be half of a larger one: a local run queue of Go's runtime holds 256 goroutines, and
	// when it is full, half of them go to the global queue. A smaller crowd would gain nothing from a turn after the global queue,
	// and would lose a time slice for each compute-bound goroutine there.
	overflow = 128
)

// A settling is the delay before the settled driver sends its requests. A settling ends when other goroutines have had their
// turns, or when the timer fires.
type settling struct {
	d         *driver
	limit     *limit
	met       int // size of the crowd when the turns began
	again     int // number of times that the turns have begun again
	seen      int // size of the crowd when the timer started
	prolonged int
	within    time.Duration // the time to settle
	extra     time.Duration // time that restarts may still add to within
}

// growLocked counts one more waiter of the crowd. If no request is pending, the crowd is new: all earlier waiters have left.
func (d *driver) growLocked() {
	if d.reads.First() == nil && d.writes.First() == nil {
		d.waiters = 0
	}
	d.waiters++
}

// settleLocked starts a settling, which calls d.idle when it ends.
func (d *driver) settleLocked() {
	o := &d.s.opts
	g := &settling{d: d, seen: d.waiters, met: d.waiters, within: cmp.Or(o.SettleWithin, defaultWithin)}
	d.settling = g
	turns := cmp.Or(o.Settle, defaultTurns)
	if turns >= 0 && preempt.Explored() { // Explore starts this task at an arbitrary time
		goroutine(g.finish)
		return
	}
	if g.within >= 0 {
		short := g.short()
		g.extra = min(mostTimes*short, longest) - (1+prolongs)*short
		g.limit = newLimit(g.within, g.late)
	}
	if turns >= 0 {
		goroutine(func() { g.yieldTurns(turns) })
	}
}

// short returns the time to settle, but at most the time whose equal restarts take longest. A product of short and the size of a
// crowd cannot overflow.
func (g *settling) short() time.Duration { return min(g.within, longest/(1+prolongs)) }

// yieldTurns gives other goroutines the given number of turns, and then ends the settling, unless the crowd has grown. The turn
// of a large crowd after the global run queue leaves -1.
func (g *settling) yieldTurns(left int) {
	d := g.d
	d.s.guard.Lock()
	going, size := d.settling == g, d.waiters
	more := left <= 0 && g.met != size && g.again < repeats
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
	case left == 0 && size >= overflow:
		runtime.Gosched()
		g.yieldTurns(-1)
	default:
		g.finish()
	}
}

// late is called by the timer. If the crowd has grown, the timer is restarted, with more time for a larger crowd; otherwise the
// settling ends.
func (g *settling) late() {
	d := g.d
	d.s.guard.Lock()
	more := d.settling == g && g.seen != d.waiters && g.prolonged < prolongs
	if more {
		g.seen = d.waiters
		g.prolonged++
		add := min(g.short()*time.Duration(g.seen-1), g.extra)
		g.extra -= add
		g.limit.again(g.within+add, g.late)
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

// Package patience decides whether a goroutine should yield before it sleeps, because another goroutine may be about to
// wake it.
package patience

import "time"

// A Patience remembers whether yielding has helped recently. A yield helps if two goroutines wait for each other in
// turn: it saves a sleep and a wake-up, which take longer. A yield does not help if the wait is long. With many
// runnable goroutines a yield does harm, because the goroutine moves to the end of the run queue, but a woken goroutine
// would run next. So each failure makes yields rarer, and a slow yield makes them very rare.
type Patience struct {
	skip    uint8 // the number of yields to skip
	inVain  uint8 // the number of yields skipped after the last failure
	untimed uint8 // the number of yields until the next timed yield
	begun   time.Duration
}

const (
	timedEvery = 32
	tooLong    = 5 * time.Microsecond // a yield to one goroutine that is about to sleep takes far less
)

var epoch = time.Now()

// Begin reports whether the goroutine should yield. If so, the caller must call runtime.Gosched and then End. (Begin
// does not call Gosched itself, because after a goroutine switch the processor mispredicts every return.)
func (p *Patience) Begin() bool {
	if p.skip > 0 {
		p.skip--
		return false
	}
	if p.untimed == 0 {
		p.begun = time.Since(epoch)
	}
	return true
}

// End records whether the yield has helped.
func (p *Patience) End(helped bool) {
	if p.untimed > 0 {
		p.untimed--
	} else if p.untimed = timedEvery; time.Since(epoch)-p.begun > tooLong {
		p.fail(1<<8 - 1)
		return
	}
	if helped {
		p.inVain = 0
	} else {
		p.fail(min(2*p.inVain+1, 1<<6-1))
	}
}

// fail makes the Patience skip the next n yields.
func (p *Patience) fail(n uint8) { p.skip, p.inVain, p.untimed = n, n, 0 }

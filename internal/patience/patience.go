// Package patience decides whether a goroutine that is about to sleep yields to the rest first. Another goroutine may be about to wake
// it.
package patience

import "time"

// A Patience remembers whether yielding has helped recently. If two goroutines wait for each other in turn, it helps each time, and saves a
// sleep and a wake-up, which take longer. It does not help in a long wait. With many runnable goroutines it harms: a goroutine that yields
// is the last in their queue, but a woken goroutine is the first. So each failure makes it rarer, and a slow yield makes it very rare.
type Patience struct {
	skip    uint8 // times not to try
	inVain  uint8 // times skipped after the last failure
	untimed uint8 // times until the next one is timed
	begun   time.Duration
}

const (
	timedEvery = 32
	tooLong    = 5 * time.Microsecond // a yield to one goroutine that is about to sleep takes far less
)

var epoch = time.Now()

// Begin reports whether to yield, by runtime.Gosched, and then to call End. (The call is left to the caller, since after a switch the
// processor mispredicts every return.)
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

// End notes whether the yield has helped.
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

// fail skips the next n times.
func (p *Patience) fail(n uint8) { p.skip, p.inVain, p.untimed = n, n, 0 }

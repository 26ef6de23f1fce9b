// Package patience is for who is about to put its goroutine to sleep, to be woken by another: it lets the other
// goroutines run first, since one of them may be about to wake it.
package patience

import "time"

// A Patience remembers whether giving way has helped of late. Where two goroutines wait for each other in turn, it does
// each time, and saves a sleep and a wake-up, which take longer. Where a wait is long, it is in vain; and where many
// goroutines are runnable, it is worse than that, since who gives way is the last in their queue, and who is woken the
// first. So it is tried less and less often after it was in vain, and hardly ever after it has taken long.
type Patience struct {
	skip    uint8 // times not to try
	inVain  uint8 // times skipped after the last failure
	untimed uint8 // times until the next one is timed
	begun   time.Duration
}

const (
	timedEvery = 32
	tooLong    = 5 * time.Microsecond // to give way to one goroutine that is about to sleep takes far less
)

var epoch = time.Now()

// Begin reports whether to give way, by runtime.Gosched, and then to call End. (The call is left to the caller, since after a
// switch the processor mispredicts every return.)
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

// End is told whether that has helped.
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

// fail has it not tried so many times.
func (p *Patience) fail(n uint8) { p.skip, p.inVain, p.untimed = n, n, 0 }

// Package blocking runs functions that may block, on a limited number of goroutines outside all schedulers.
package blocking

import (
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
)

// Goroutines runs functions, each on its own goroutine. New returns a Goroutines. After Close, no new functions are
// accepted.
//
// At most width functions run concurrently, and further functions wait in a queue. With a fixed width, the functions
// could deadlock. For example, all running functions might wait for a connection, while the function that would return
// one is queued. So if functions are queued and no running function ends for 100 ms, the width doubles, up to
// Limits.Max. When no function is running, the width returns to Limits.Width.
//
// The states of the queue: -B> is a call of Block, -E> the end of a function, -L> a look, which is a call of
// growIfStuck.
//
//	empty   -B> queued   width functions run; the first look is scheduled
//	queued  -E> queued   the function that has waited longest starts
//	queued  -L> queued   the width grows unless a function has ended since the last look; the next look is scheduled
//	queued  -E>, -L> empty
//
// Invariant: while functions are queued, width functions run, and a look is scheduled unless it could neither grow the
// width nor report that the width is too small.
type Goroutines struct {
	limits Limits
	gone   func()
	start  func(f func()) // runs f on a new goroutine
	later  func(look int) // schedules a look

	mu      atomicx.Mutex // no other lock is acquired while mu is held
	width   int
	running int
	queue   []func()
	ended   bool // a function has ended since the last look was scheduled
	looks   int  // number of looks scheduled so far
	set     int  // number of the scheduled look; zero means none
	told    [2]bool
	closed  bool
}

// Limits configure a Goroutines. Zero means the default, except that Closed is required.
type Limits struct {
	Width int // default 64
	Max   int // default 4096; a Max below Width means Width

	// Closed is the error of a Block after Close.
	Closed error

	// If this function is not nil, it is called with a line of text when the width first grows, and when the width
	// would first have to grow beyond Max.
	Tell func(text []byte)
}

const (
	defaultWidth = 64
	defaultMax   = 4096 // the Go runtime ends the process at 10,000 threads
	patience     = 100 * time.Millisecond
)

// New returns a Goroutines. The function gone is called once, when Close has been called and the last function has
// ended. The function gone must not block.
func New(l Limits, gone func()) *Goroutines {
	if l.Width <= 0 {
		l.Width = defaultWidth
	}
	if l.Max <= 0 {
		l.Max = defaultMax
	}
	l.Max = max(l.Max, l.Width)
	g := &Goroutines{limits: l, gone: gone, width: l.Width}
	g.start = func(f func()) { go f() }
	g.later = func(look int) { time.AfterFunc(patience, func() { g.growIfStuck(look) }) } // a new timer, because timers belong to synctest bubbles
	return g
}

// Block runs f on a new goroutine, or queues f if width functions are running. Block never waits. After Close, it
// returns Limits.Closed and never runs f. A panic in f ends the process.
func (g *Goroutines) Block(f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	f = labels.Inherit(f)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return g.limits.Closed
	case g.running < g.width:
		g.launchLocked(f)
	default:
		g.queue = append(g.queue, f)
		g.scheduleLocked()
	}
	return nil
}

// launchLocked runs f on a new goroutine, and counts f as running. The caller must hold g.mu.
func (g *Goroutines) launchLocked(f func()) {
	g.running++
	g.start(func() {
		defer g.functionEnded() // f may call runtime.Goexit
		labels.Clear()          // the goroutine has inherited the labels of its creator
		f()
	})
}

// first removes from the queue the function that has waited longest, and returns it. The caller must hold g.mu.
func (g *Goroutines) first() func() {
	f := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	return f
}

// functionEnded is called when a function has ended. functionEnded starts the first function in the queue, if there is
// one.
func (g *Goroutines) functionEnded() {
	g.mu.Lock()
	g.ended = true
	g.running--
	if len(g.queue) > 0 {
		g.launchLocked(g.first())
	}
	if g.running == 0 {
		g.width, g.set = g.limits.Width, 0 // a look that was scheduled in a synctest bubble never runs once the bubble has ended
	}
	over := g.running == 0 && g.closed
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

// scheduleLocked schedules a look if functions wait and no look is scheduled. The caller must hold g.mu.
func (g *Goroutines) scheduleLocked() {
	if g.set != 0 || len(g.queue) == 0 || g.width == g.limits.Max && (g.limits.Tell == nil || g.told[1]) {
		return
	}
	g.looks++
	g.set, g.ended = g.looks, false
	g.later(g.set)
}

// growIfStuck grows the width if no function has ended since the look was scheduled.
func (g *Goroutines) growIfStuck(look int) {
	g.mu.Lock()
	if look != g.set {
		g.mu.Unlock()
		return
	}
	g.set = 0
	var text []byte
	if len(g.queue) > 0 && !g.ended {
		text = g.grow()
	}
	g.scheduleLocked()
	g.mu.Unlock()
	if text != nil {
		g.limits.Tell(text) // g.mu is not held, because the function may close the scheduler
	}
}

// grow doubles the width, up to Max, and starts queued functions. grow returns the text of the report, or nil if there
// is nothing to report. The caller must hold g.mu.
func (g *Goroutines) grow() (text []byte) {
	was, most := g.width, g.limits.Max
	g.width = min(2*was, most)
	atMost, then := 0, fmt.Sprintf("from now on up to %d run at a time", g.width)
	if g.width == was {
		atMost, then = 1, "MaxBlocking is reached"
	}
	if g.limits.Tell != nil && !g.told[atMost] {
		g.told[atMost] = true
		text = fmt.Appendf(nil, "suspend.Blocking: %d functions run, none of them has ended for %v, and %d wait: %s", g.running, patience, len(g.queue), then)
	}
	for g.running < g.width && len(g.queue) > 0 {
		g.launchLocked(g.first())
	}
	return text
}

// Counts returns the numbers of running and queued functions.
func (g *Goroutines) Counts() (running, queued int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(g.running), int64(len(g.queue))
}

// Close makes later calls of Block fail, but queued functions still run.
func (g *Goroutines) Close() {
	g.mu.Lock()
	over := g.running == 0 && !g.closed
	g.closed = true
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

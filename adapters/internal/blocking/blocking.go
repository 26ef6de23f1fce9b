// Package blocking runs functions that may block, on a bounded number of goroutines of no scheduler.
package blocking

import (
	"fmt"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/suspend"
)

// Goroutines runs functions, each on a goroutine that ends with it, until Close. It is made by New.
//
// At most Width functions run concurrently, and further functions wait in a queue. A fixed width can deadlock: if all
// running functions wait for a connection, the function that would give one back waits in the queue. So while functions
// wait and no running function ends, the width doubles each 100 ms, up to Max. It is back to Width when nothing runs.
//
// The steps of a queue: -B> is a call of Block, -E> the end of a function, -L> a look.
//
//	empty   -B> queued   width functions run; the first look is set
//	queued  -E> queued   the function that has waited longest takes the place
//	queued  -L> queued   the width grows unless a function has ended since the last look; the next look is set
//	queued  -E>, -L> empty
//
// Invariant: while functions wait, width of them run, and a look is set, unless a look could neither grow the width nor
// report it.
type Goroutines struct {
	limits Limits
	gone   func()
	start  func(f func()) // runs f on a new goroutine
	later  func(look int) // sets a look

	mu      atomicx.Mutex // a leaf
	width   int
	running int
	queue   []func()
	ended   bool // a function has, since the last look
	looks   int  // looks that were set
	set     int  // the look that is to come, 0: none
	told    [2]bool
	closed  bool
}

// Limits are the choices that Goroutines are made with. Zero means the default.
type Limits struct {
	Width int // 64
	Max   int // 4096; a Max below Width means Width

	// Tell is called with a line of text when the width grows for the first time, and when it would have to grow beyond
	// Max. It may be nil.
	Tell func(text []byte)
}

const (
	defaultWidth = 64
	defaultMax   = 4096 // the Go runtime ends the process at 10,000 threads
	patience     = 100 * time.Millisecond
)

// New returns Goroutines. gone is called once, when they are closed and the last has ended; it must not block.
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
	g.later = func(look int) { time.AfterFunc(patience, func() { g.look(look) }) } // a new timer each time: it belongs to the synctest bubble of its caller
	return g
}

// Block runs f, now or when its turn comes. It never waits. After Close it returns suspend.ErrClosed and f never
// runs. A panic in f ends the process.
func (g *Goroutines) Block(f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	f = labels.Inherit(f)
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return suspend.ErrClosed
	case g.running < g.width:
		g.begin(f)
	default:
		g.queue = append(g.queue, f)
		g.watch()
	}
	return nil
}

// begin runs f in a place that is free. g.mu is held.
func (g *Goroutines) begin(f func()) {
	g.running++
	g.start(func() {
		defer g.end()  // f may exit the goroutine
		labels.Clear() // the labels belong to the function before
		f()
	})
}

// first takes the function that has waited longest out of the queue. g.mu is held.
func (g *Goroutines) first() func() {
	f := g.queue[0]
	g.queue[0] = nil
	g.queue = g.queue[1:]
	return f
}

// end hands the place of a function that has ended to the first in the queue, or gives it up.
func (g *Goroutines) end() {
	g.mu.Lock()
	g.ended = true
	g.running--
	if len(g.queue) > 0 {
		g.begin(g.first())
	}
	if g.running == 0 {
		g.width, g.set = g.limits.Width, 0 // a look that was set in a bubble ends with it, and never comes
	}
	over := g.running == 0 && g.closed
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

// watch sets a look if functions wait and none is set. g.mu is held.
func (g *Goroutines) watch() {
	if g.set != 0 || len(g.queue) == 0 || g.width == g.limits.Max && (g.limits.Tell == nil || g.told[1]) {
		return
	}
	g.looks++
	g.set, g.ended = g.looks, false
	g.later(g.set)
}

// look lets the width grow if no function has ended since the look was set.
func (g *Goroutines) look(look int) {
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
	g.watch()
	g.mu.Unlock()
	if text != nil {
		g.limits.Tell(text) // under no lock: it may close the scheduler
	}
}

// grow doubles the width, up to Max, and returns the text for the report, if there is any. g.mu is held.
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
		g.begin(g.first())
	}
	return text
}

// Counts returns how many functions run and how many wait.
func (g *Goroutines) Counts() (running, queued int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(g.running), int64(len(g.queue))
}

// Close refuses new functions, but queued functions still run.
func (g *Goroutines) Close() {
	g.mu.Lock()
	over := g.running == 0 && !g.closed
	g.closed = true
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

// Package blocking runs functions that may block, on a bounded number of goroutines of no scheduler.
package blocking

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Goroutines runs functions, each on a goroutine that ends with it, until Close. It is made by New.
type Goroutines struct {
	width int
	gone  func()

	mu      atomicx.Mutex // a leaf
	running int
	queue   []func() // not empty only while width of them run
	closed  bool
}

// New returns Goroutines that run width functions at a time. gone is called once, when they are closed and the last
// has ended; it must not block.
func New(width int, gone func()) *Goroutines { return &Goroutines{width: width, gone: gone} }

// Block runs f, now or when its turn comes. It never waits. After Close it returns suspend.ErrClosed and f never
// runs. A panic in f ends the process.
func (g *Goroutines) Block(f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return suspend.ErrClosed
	case g.running < g.width:
		g.running++
		go g.run(f)
	default:
		g.queue = append(g.queue, f)
	}
	return nil
}

// Counts returns how many functions run and how many wait.
func (g *Goroutines) Counts() (running, queued int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int64(g.running), int64(len(g.queue))
}

func (g *Goroutines) run(f func()) {
	defer g.next() // f may exit the goroutine
	f()
}

// next hands the place of one that has ended to the first in the queue, or gives it up.
func (g *Goroutines) next() {
	g.mu.Lock()
	if len(g.queue) > 0 {
		f := g.queue[0]
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.mu.Unlock()
		go g.run(f)
		return
	}
	g.running--
	over := g.running == 0 && g.closed
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

// Close refuses new functions; those that are queued still run.
func (g *Goroutines) Close() {
	g.mu.Lock()
	over := g.running == 0 && !g.closed
	g.closed = true
	g.mu.Unlock()
	if over {
		g.gone()
	}
}

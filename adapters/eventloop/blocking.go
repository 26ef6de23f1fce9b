package eventloop

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// blockers runs functions on goroutines, width at a time, each on one of its own that ends with it.
type blockers struct {
	width int
	end   *countdown // told once: closed, and none is left

	mu      atomicx.Mutex
	running int
	queue   []func()
	closed  bool
}

func (b *blockers) init(width int, end *countdown) { b.width, b.end = width, end }

// Block has f run, now or when its turn comes.
func (b *blockers) Block(f func()) error {
	if f == nil {
		panic("eventloop: nil function")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return suspend.ErrClosed
	case b.running < b.width:
		b.running++
		go b.run(f)
	default:
		b.queue = append(b.queue, f)
	}
	return nil
}

func (b *blockers) run(f func()) {
	defer b.next() // f may exit the goroutine
	f()
}

// next hands the place of one that has ended to the first in the queue, or gives it up.
func (b *blockers) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) > 0 {
		f := b.queue[0]
		b.queue[0] = nil
		b.queue = b.queue[1:]
		go b.run(f)
		return
	}
	if b.running--; b.running == 0 && b.closed {
		b.end.done()
	}
}

func (b *blockers) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	if b.running == 0 {
		b.end.done()
	}
}

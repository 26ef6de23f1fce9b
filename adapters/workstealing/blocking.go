package workstealing

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A blocking is the goroutines that run what may block, and what waits for one of them.
type blocking struct {
	mu     atomicx.Mutex // a leaf
	width  int           // goroutines there are
	queue  []func()      // not empty only while width is BlockingWidth
	closed bool
}

// Block runs f on a goroutine that is no worker, as suspend.Blocking does for a task of p. It never waits: f waits,
// while as many others run as Options.BlockingWidth says. A panic in f ends the process. Once Close has waited for
// all tasks, Block returns suspend.ErrClosed and f never runs.
func (p *Pool) Block(f func()) error {
	if f == nil {
		panic("workstealing: nil function")
	}
	b := &p.blocking
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return suspend.ErrClosed
	case b.width == p.opts.BlockingWidth:
		b.queue = append(b.queue, f)
	default:
		b.width++
		p.goroutines.Add(1) // not from zero: the workers outlive the open state
		go p.runBlocking(f)
	}
	return nil
}

// runBlocking runs f, and then what has queued.
func (p *Pool) runBlocking(f func()) {
	returned := false
	defer func() {
		if returned {
			p.exit()
		} else if f = p.blocking.next(); f != nil { // f has exited its goroutine
			go p.runBlocking(f)
		} else {
			p.exit()
		}
	}()
	for f != nil {
		f()
		f = p.blocking.next()
	}
	returned = true
}

// next takes what has waited longest; nil ends the goroutine.
func (b *blocking) next() (f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.queue = nil
		b.width--
		return nil
	}
	f, b.queue[0] = b.queue[0], nil
	b.queue = b.queue[1:]
	return f
}

func (b *blocking) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

// An event happens once, and is waited for by any number of tasks.
type event struct {
	guard    suspend.Guard
	happened bool
	waiters  suspend.Queue[struct{}, struct{}] // empty once it has happened
}

func (e *event) happen() {
	e.guard.Lock()
	e.happened = true
	e.waiters.ResumeAll(struct{}{}, nil)
	e.guard.Unlock()
}

// wait is not cancellable.
func (e *event) wait() {
	_, _ = suspend.Suspend(context.Background(), func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		e.guard.Lock()
		defer e.guard.Unlock()
		if !e.happened {
			e.waiters.Push(r, struct{}{})
		}
		return struct{}{}, e.happened
	})
}

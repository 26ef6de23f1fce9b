package stage

import (
	"context"
	"runtime/pprof"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A worker runs one handler after another. Its fields are under the guard, but those that say otherwise.
type worker struct {
	p     *Pool
	index int // in p.workers
	run   func()
	gid   int64
	at    *core // serving
	task  *task
	r     suspend.Resumer[wake] // idle

	now   int64 // the worker's own, like the rest
	label *core
	owed  owed
}

// An owed is the debt of a worker, to be paid when the guard is free.
type owed struct {
	leave *task // its way has ended
	err   error
	after interface{ start() }
	starting
}

func (o *owed) any() bool { return o.leave != nil || o.after != nil || o.n > 0 }

func (o *owed) pay() {
	if t, err := o.leave, o.err; t != nil {
		o.leave, o.err = nil, nil
		t.leave(err)
	}
	if a := o.after; a != nil {
		o.after = nil
		a.start()
	}
	if s := o.starting; s.n > 0 {
		o.starting = starting{}
		for range s.n {
			s.pool.start()
		}
	}
}

type wake uint8

const (
	dismissed wake = iota
	found          // work, with a permit
	called         // with a permit, and counted as coming
)

// work is the body of a worker, which comes with a permit.
func (w *worker) work() {
	p := w.p
	w.gid = gid.Get()
	w.now = p.now()
	how := called
	for how != dismissed {
		p.guard.Lock()
		if how == called {
			p.coming--
		}
		w.serve()
		for !p.linger && w.owed.any() { // it ends only when the last task is told
			p.release()
			w.owed.pay()
			p.guard.Lock()
			w.serve()
		}
		p.running--
		w.at, w.task = nil, nil
		if !p.linger {
			p.end(w)
			return
		}
		p.release()
		w.owed.pay()
		how, _ = suspend.Wait[wake](context.Background(), idling{w}, false)
		w.now = p.now()
	}
	p.guard.Lock()
	p.end(w)
}

// serve is called with the guard held, and returns so when there is nothing to do.
func (w *worker) serve() {
	p := w.p
	for c := p.next(); c != nil; c = p.next() {
		c.server.serve(w)
		if c.o.Limit != nil {
			p.adjust(w, c)
		}
	}
}

// end takes w off the list. It is called with the guard held, and unlocks it.
func (p *Pool) end(w *worker) {
	last := len(p.workers) - 1
	p.workers[w.index] = p.workers[last]
	p.workers[w.index].index = w.index
	p.workers[last] = nil
	p.workers = p.workers[:last]
	p.alive--
	p.settle()
	if len(p.spare) < 16 {
		w.label, w.r, w.at, w.task, w.owed = nil, suspend.Resumer[wake]{}, nil, nil, owed{}
		p.spare = append(p.spare, w)
	}
	letGo := p.letGo()
	p.release()
	letGo()
}

// named gives the goroutine of a worker the name of the stage, for profiles.
func (w *worker) named(c *core) {
	if w.p.linger && w.label != c {
		w.label = c
		pprof.SetGoroutineLabels(c.labels)
	}
}

// block gives back the permit of a handler of c that is going to wait. If a says for what, a cycle is ended first. goOn takes the permit
// again.
func (c *core) block(a *asking) {
	c.pool.guard.Lock()
	c.blocked++
	if a != nil {
		a.index = len(c.asking)
		c.asking = append(c.asking, a)
	}
	c.pool.running--
	c.pool.release()
	if a != nil {
		a.endCycle()
	}
}

func (c *core) goOn(a *asking) {
	c.pool.guard.Lock()
	c.blocked--
	if a != nil {
		last := len(c.asking) - 1
		c.asking[a.index] = c.asking[last]
		c.asking[a.index].index = a.index
		c.asking[last] = nil
		c.asking = c.asking[:last]
	}
	c.pool.running++
	c.pool.guard.Unlock()
}

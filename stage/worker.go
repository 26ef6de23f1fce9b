package stage

import (
	"context"
	"errors"
	"runtime/pprof"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// work is the body of a worker. The worker holds a permit when work begins.
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
		for !p.linger && w.owed.any() { // the worker must not end before its last task is answered
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
		how, _ = suspend.Wait[wake](context.Background(), idling{w})
		w.now = p.now()
	}
	p.guard.Lock()
	p.end(w)
}

// serve runs tasks until none can begin. The caller must hold p.guard, which is held again when serve returns.
func (w *worker) serve() {
	p := w.p
	for c := p.next(); c != nil; c = p.next() {
		c.server.serve(w)
		if c.o.Limit != nil {
			p.adjust(w, c)
		}
	}
}

// end removes w from the list of workers. The caller must hold p.guard, and end unlocks it before it returns.
func (p *Pool) end(w *worker) {
	last := len(p.workers) - 1
	p.workers[w.index] = p.workers[last]
	p.workers[w.index].index = w.index
	p.workers[last] = nil
	p.workers = p.workers[:last]
	p.alive--
	p.wakeClosers()
	if len(p.spare) < 16 {
		w.label, w.r, w.at, w.task, w.owed = nil, suspend.Resumer[wake]{}, nil, nil, owed{}
		p.spare = append(p.spare, w)
	}
	letGo := p.letGo()
	p.release()
	letGo()
}

// named sets the name of the stage as a label of the worker's goroutine, for profiles.
func (w *worker) named(c *core) {
	if w.p.linger && w.label != c {
		w.label = c
		pprof.SetGoroutineLabels(c.labels)
	}
}

// An idling is the Source with which a worker on plain goroutines waits for work. Pool.tick dismisses the worker after one to two
// seconds.
type idling struct{ w *worker }

func (i idling) Guard() *suspend.Guard { return &i.w.p.guard }

func (i idling) Try() (wake, bool, error) {
	p := i.w.p
	switch {
	case p.running < p.width && p.next() != nil:
		p.running++
		return found, true, nil
	case p.open == 0:
		return dismissed, true, nil
	}
	return dismissed, false, nil
}

func (i idling) Enqueue(r suspend.Resumer[wake]) {
	p := i.w.p
	i.w.r = r
	p.idle = append(p.idle, i.w)
	if !p.ticking {
		p.ticking, p.least = true, len(p.idle)
		suspend.AfterFunc(p.timers, time.Second, p.tick)
	}
}

func (i idling) Remove(suspend.Resumer[wake]) {} // an idle worker is never cancelled

// tick dismisses the workers that have been idle since the previous tick.
func (p *Pool) tick() {
	p.guard.Lock()
	p.dismiss(min(p.least, len(p.idle)))
	p.least = len(p.idle)
	p.ticking = p.least > 0
	again := p.ticking
	p.guard.Unlock()
	if again {
		suspend.AfterFunc(p.timers, time.Second, p.tick)
	}
}

// dismiss ends the n workers that have been idle longest.
func (p *Pool) dismiss(n int) {
	for _, w := range p.idle[:n] {
		w.r.Resume(dismissed, nil)
	}
	m := copy(p.idle, p.idle[n:])
	clear(p.idle[m:])
	p.idle = p.idle[:m]
}

// next returns the stage to serve, or nil if no task can begin or too many workers run.
func (p *Pool) next() (best *core) {
	if p.running > p.width || p.waiting == 0 {
		return nil
	}
	for i := 0; i < len(p.loaded); i++ {
		switch c := p.loaded[i]; {
		case c.waiting == 0:
			c.unlist()
			i--
		case c.free() > 0 && (best == nil || c.server.oldest() < best.server.oldest()):
			best = c
		}
	}
	return best
}

// unlock unlocks the guard and returns the dues, which the caller must pay.
func (p *Pool) unlock() (due dues) {
	due = dues{p, p.due(), p.suspects}
	if due.suspects != nil {
		p.suspects = nil
	}
	p.guard.Unlock()
	return due
}

// release unlocks the guard and pays the dues.
func (p *Pool) release() {
	due := p.unlock()
	if due.any() {
		due.pay()
	}
}

func (d *dues) any() bool { return d.starts > 0 || d.suspects != nil }

func (d *dues) pay() {
	for range d.starts {
		d.pool.start()
	}
	for s := d.suspects; s != nil; s = s.next {
		s.a.look()
	}
}

// kick pays the dues of an earlier critical section that did not call release.
func (p *Pool) kick() {
	p.guard.Lock()
	p.release()
}

// due takes permits for the workers that the queued tasks need, wakes idle workers, and returns how many workers the caller must
// start.
func (p *Pool) due() (starts int) {
	if p.running >= p.width || p.waiting == 0 {
		return 0
	}
	return p.summon()
}

func (p *Pool) summon() (starts int) {
	want := 0
	for _, c := range p.loaded {
		want += min(c.waiting, max(0, c.free()))
	}
	for p.running < p.width && p.coming < want {
		p.running++
		p.coming++
		if n := len(p.idle); n > 0 {
			w := p.idle[n-1]
			p.idle[n-1] = nil
			p.idle = p.idle[:n-1]
			p.least = min(p.least, n-1)
			w.r.Resume(called, nil) // the wait of an idle worker is never cancelled
		} else {
			starts++
		}
	}
	return starts
}

func (p *Pool) start() {
	p.guard.Lock()
	var w *worker
	if n := len(p.spare); n > 0 {
		w = p.spare[n-1]
		p.spare = p.spare[:n-1]
	} else {
		w = &worker{p: p}
		w.run = w.work
	}
	w.index = len(p.workers)
	p.workers = append(p.workers, w)
	p.alive++
	refused := p.refused
	p.guard.Unlock()
	if !refused {
		err := p.on.Go(w.run)
		if err == nil {
			return
		}
		if errors.Is(err, suspend.ErrClosed) {
			p.guard.Lock()
			p.refused = true
			p.guard.Unlock()
		}
	}
	go w.run() // accepted tasks must run even if the scheduler refuses the worker
}

// adjust calls the limiter of c if a window is over. The caller must hold p.guard, which is held again when adjust returns.
func (p *Pool) adjust(w *worker, c *core) {
	if s, due := c.sample(w.now); due {
		w.at, w.task = nil, nil
		p.release()
		w.owed.pay()
		p.limited(w, c, s)
	}
}

// limited calls c.limit for a worker. If the limiter does not return, the worker gives back its permit and ends.
func (p *Pool) limited(w *worker, c *core, s Sample) {
	returned := false
	defer func() {
		if !returned {
			p.running--
			p.end(w)
		}
	}()
	c.limit(s)
	returned = true
}

// hold keeps the scheduler open, if the scheduler is a Holder, until no task is left and the last worker has ended. The last worker
// may be a plain goroutine, because a closing scheduler starts no more tasks. hold returns the scheduler whose timers are to be
// used. If the scheduler is closed, hold returns nil, which means package time, because a closed scheduler drops its timers.
func (p *Pool) hold() (timers suspend.Spawner) {
	h, ok := suspend.As[sched.Holder](p.on)
	if !ok {
		p.guard.Lock()
		defer p.guard.Unlock()
		if p.refused {
			return nil
		}
		return p.timers
	}
	release, err := h.Hold()
	if err != nil {
		return nil
	}
	p.guard.Lock()
	first := p.held == nil
	if first {
		p.held = release
	}
	p.guard.Unlock()
	if !first {
		release()
	}
	return p.timers
}

// letGo ends the hold if no task and no worker is left. The caller must hold p.guard, and must call the returned function without
// it.
func (p *Pool) letGo() (release func()) {
	if p.held == nil || p.alive+p.waiting+p.delayed > 0 {
		return func() {}
	}
	release, p.held = p.held, nil
	return release
}

func (o *owed) any() bool { return o.leave != nil || o.after != nil || o.dues.any() }

func (o *owed) pay() {
	if t, err := o.leave, o.err; t != nil {
		o.leave, o.err = nil, nil
		t.ends(err)
	}
	if a := o.after; a != nil {
		o.after = nil
		a.start()
	}
	if d := o.dues; d.any() {
		o.dues = dues{}
		d.pay()
	}
}

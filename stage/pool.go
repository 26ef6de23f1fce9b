package stage

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Pool is a number of workers, on any scheduler, that several stages may share. At most Width handlers run at a
// time; a handler that waits for room in another stage does not count meanwhile. Of the stages with work it serves
// the one whose first task has waited longest, so none starves.
//
// Workers exist on demand. A push that finds a permit free starts one, or wakes an idle one; a worker that finds nothing
// to do ends. On plain goroutines a worker lingers for one to two seconds first, because a fresh goroutine has to grow its
// stack again. -P> is a push or anything else that makes work, -W> a worker, -T> the timer, -B> a worker that waits for room.
//
//	none     -P> coming   a permit is taken for it
//	idle     -P> coming   the one that became idle last
//	coming   -W> running
//	running  -B> blocked  the permit is given back
//	blocked  -B> running  at once, even above the width
//	running  -W> idle, none
//	idle     -T> none     those that were idle all the second
//
// Invariant: if a stage has work and a free slot, and a permit is free, a worker is coming. So no wake-up is lost.
// Invariant: running is at most width, but after blocked and after the width shrank; then the next worker to look ends.
// Debt: the maker of work, and the giver of a permit, owe a call of due before they unlock.
type Pool struct {
	id     uint64 // the order of locking
	name   string
	on     suspend.Spawner
	inline bool // on can be compared
	linger bool
	clock  suspend.Clock   // of on; nil: that of package time
	timers suspend.Spawner // nil: those of package time

	guard   suspend.Guard // the rest, and all of its stages
	width   int
	running int // permits taken: workers coming or running
	coming  int
	alive   int // workers that have not ended
	waiting int // tasks of all stages
	delayed int
	open    int     // stages that are not closed, or not empty
	loaded  []*core // stages with tasks that wait, and some that had
	tickets uint64
	idle    []*worker // the last is the next to be woken
	least   int       // the smallest number of idle workers since the last tick
	ticking bool
	refused bool                              // on is closed: goroutines from now on
	held    func()                            // ends the hold of on; nil: it is not held
	leaving suspend.Queue[struct{}, struct{}] // callers of Close that wait for the last worker
	workers []*worker
	spare   []*worker

	making atomicx.Mutex // of funcs
	funcs  atomicx.Pointer[Stage[func(), struct{}]]
}

// A core is the part of a stage that its pool sees, without its types.
type core struct {
	name   string
	pool   *Pool
	o      Options
	server server
	labels context.Context
	errs   stageErrors

	// Under the guard of the pool:
	width     int
	slots     int       // handlers running or blocked
	blocked   int       // of these, those that wait for another task, or for room
	asking    []*asking // of these, those that Dos and room are known to hold up
	lent      int       // tasks for which a handler of this stage waits, or has waited, by a chain of Dos
	waiting   int
	progress  int // tasks in slots
	delayed   int
	closed    bool
	listed    bool
	index     int  // in the list of the pool
	cut       bool // Close has given up waiting
	blocking  context.Context
	unblock   func(cause error)
	closers   suspend.Queue[struct{}, struct{}] // callers of Close that wait for tasks
	rejects   int                               // since the last sweep
	shed      shedder
	paced     bool // by Rate or Gather
	pace      pace
	gathering bool // held for company, and not for Rate alone
	held      bool // a worker waits until the next handler may begin
	ripe      bool // it has waited for that
	holder    suspend.Queue[struct{}, struct{}]
	limiting  bool
	window    window
	counts
}

// A server is a stage.
type server interface {
	oldest() uint64 // the ticket of the first task
	serve(w *worker)
	admit(now int64)
	drop(t *task) // which waits
}

// A starting is a number of workers to be started, with their permits.
type starting struct {
	pool *Pool
	n    int
}

// NewPool returns a pool of a width, at least 1, whose workers are tasks of a scheduler; nil is plain goroutines.
func NewPool(name string, width int, on suspend.Spawner) *Pool {
	if width < 1 {
		panic("stage: a pool without a width")
	}
	if on == nil {
		on = suspend.Goroutines
	}
	comparable := reflect.ValueOf(on).Comparable()
	p := &Pool{id: pools.Add(1), name: name, on: on, inline: comparable, linger: comparable && on == suspend.Goroutines, width: width}
	if c, ok := suspend.As[suspend.Clock](on); ok {
		p.clock, p.timers = c, on
	}
	return p
}

var pools atomicx.Uint64

// SetWidth changes the number of handlers that run at a time. Those that run above it end in their own time.
func (p *Pool) SetWidth(n int) {
	if n < 1 {
		panic("stage: a pool without a width")
	}
	p.guard.Lock()
	p.width = n
	p.release()
}

// release unlocks the guard, and starts the workers that are owed.
func (p *Pool) release() {
	n := p.due()
	p.guard.Unlock()
	for range n {
		p.start()
	}
}

// kick starts the workers that an earlier critical section owes.
func (p *Pool) kick() {
	p.guard.Lock()
	p.release()
}

// due takes permits for the workers that the work needs, wakes those that are idle, and returns how many are to be started.
func (p *Pool) due() (starts int) {
	if p.running >= p.width || p.waiting == 0 {
		return 0
	}
	return p.call()
}

func (p *Pool) call() (starts int) {
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
			w.r.Resume(called, nil) // its wait is never cancelled
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
	go w.run() // accepted tasks are done all the same
}

// next returns the stage to serve, nil if there is nothing to do or there are too many workers.
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

// list puts c on the list of its pool. next takes it off when it finds no task, and so does the end of the stage.
func (c *core) list() {
	p := c.pool
	c.listed, c.index = true, len(p.loaded)
	p.loaded = append(p.loaded, c)
}

func (c *core) unlist() {
	p := c.pool
	last := len(p.loaded) - 1
	p.loaded[c.index] = p.loaded[last]
	p.loaded[c.index].index = c.index
	p.loaded[last] = nil
	p.loaded = p.loaded[:last]
	c.listed = false
}

// free counts the slots for further handlers. A handler that waits for a task of its own stage lends it its slot, so at most
// width handlers run that do not wait.
func (c *core) free() int {
	if c.held {
		return 0
	}
	return c.width - c.slots + min(c.lent, c.blocked)
}

// gone takes c, which is closed and empty, off its pool. With the last stage the idle workers leave.
func (c *core) gone() {
	if c.listed {
		c.unlist()
	}
	p := c.pool
	if p.open--; p.open == 0 {
		p.dismiss(len(p.idle))
		p.settle()
	}
}

// settle wakes the callers of Close that wait for the workers.
func (p *Pool) settle() {
	if p.open == 0 && p.alive == 0 {
		p.leaving.ResumeAll(struct{}{}, nil)
	}
}

var base = time.Now()

// now is the time in nanoseconds since some moment; in a bubble of testing/synctest it is negative.
func (p *Pool) now() int64 {
	if p.clock != nil {
		return int64(p.clock.Now().Sub(base))
	}
	return int64(time.Since(base))
}

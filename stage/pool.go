package stage

import (
	"cmp"
	"errors"
	"reflect"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Pool is a group of workers, on any scheduler, that several stages may share. At most width handlers run at the same time; a
// handler does not count while it waits for a Do, or for room in a stage. The pool serves the stage whose first task has waited
// longest, so that no stage starves.
//
// Workers exist on demand. If a permit is free, a new task wakes an idle worker, or starts a worker. A worker without work ends. On
// plain goroutines a worker first stays idle for one to two seconds, because a new goroutine has to grow its stack again. In the
// diagram, -P> is a new task or anything else that makes work, -W> a worker, -T> the timer, and -B> a worker that waits for a Do or
// for room.
//
//	none     -P> coming   a permit is taken for the worker
//	idle     -P> coming   the worker that became idle last
//	coming   -W> running
//	running  -B> blocked  the permit is given back
//	blocked  -B> running  at once, even above the width
//	running  -W> idle, none
//	idle     -T> none     workers that were idle for the whole second
//
// Invariant: if a stage has a waiting task and a free slot, and a permit is free, a worker is coming. This invariant prevents lost
// wake-ups.
// Invariant: p.running exceeds p.width only after a blocked worker resumes or the width shrinks. In this state p.nextStage returns nil,
// so that a worker stops.
// Debt: a critical section that adds work or frees a permit must call p.due before it unlocks the guard. p.unlockAndPay calls p.due,
// unlocks the guard and pays the dues.
type Pool struct {
	name   string
	on     suspend.Spawner
	inline bool            // the scheduler is comparable, so a Do may run its handler on the caller
	linger bool            // workers stay idle for a while before they end
	clock  sched.Clock     // the clock of the scheduler; nil means package time
	timers suspend.Spawner // the scheduler of the timers; nil means package time

	guard    suspend.Guard // protects the fields below, and all stages of the pool
	width    int
	running  int       // the number of permits in use
	coming   int       // workers that hold a permit but have not begun
	alive    int       // workers that have not ended
	waiting  int       // queued tasks of all stages
	delayed  int       // delayed tasks of all stages
	suspects *suspect  // waits that the next call of unlockAndPay examines for a cycle
	open     int       // stages that are open, or closed and not empty
	loaded   []*core   // has every stage with queued tasks, and may have stages that had queued tasks
	tickets  uint64    // the ticket that was issued last
	idle     []*worker // the last worker is woken first
	least    int       // the smallest number of idle workers since the last tick
	ticking  bool
	refused  bool                              // the scheduler is closed, so new workers are plain goroutines
	held     func()                            // ends the hold on the scheduler; nil without a hold
	closers  suspend.Queue[struct{}, struct{}] // callers of Shutdown that wait for the last worker
	cut      int                               // functions that a Shutdown has cut off and that have not returned
	waiters  suspend.Queue[struct{}, struct{}] // callers of Shutdown that wait for these functions
	workers  []*worker
	spare    []*worker // ended workers, to be used again

	making atomicx.Mutex                              // protects the creation of funcs
	funcs  atomicx.Pointer[Flow[*function, struct{}]] // the stage of Pool.Go; as a Flow, so that other packages need not compile it
}

// NewPool returns a pool of the given width, which must be at least 1. The parameter on is the scheduler on which the workers run;
// nil means plain goroutines.
func NewPool(name string, width int, on suspend.Spawner) *Pool {
	if width < 1 {
		panic("stage: a Pool with a width less than one")
	}
	on = cmp.Or(on, suspend.Goroutines)
	comparable := reflect.ValueOf(on).Comparable()
	p := &Pool{name: name, on: on, inline: comparable, linger: comparable && on == suspend.Goroutines, width: width}
	if c, ok := suspend.As[sched.Clock](on); ok {
		p.clock, p.timers = c, on
	}
	return p
}

// SetWidth sets the maximum number of running handlers to n. Handlers that already run above the new width are not interrupted.
func (p *Pool) SetWidth(n int) {
	if n < 1 {
		panic("stage: a Pool with a width less than one")
	}
	p.guard.Lock()
	p.width = n
	p.unlockAndPay()
}

// now returns the time in nanoseconds since base. The result is negative in a synctest bubble, whose clock starts in 2000.
func (p *Pool) now() int64 {
	if p.clock != nil {
		return int64(p.clock.Now().Sub(base))
	}
	return int64(time.Since(base))
}

var base = time.Now()

// unlockAndPay unlocks the guard and pays the dues.
func (p *Pool) unlockAndPay() {
	due := p.unlock()
	if due.any() {
		due.pay()
	}
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

// The type dues is the work that remains after a critical section of the pool: workers to start and waits to examine. To pay the
// dues is to do this work.
type dues struct {
	pool     *Pool
	starts   int // the number of workers to start; they hold permits already
	suspects *suspect
}

func (d *dues) any() bool { return d.starts > 0 || d.suspects != nil }

func (d *dues) pay() {
	for range d.starts {
		d.pool.startWorker()
	}
	for s := d.suspects; s != nil; s = s.next {
		s.a.examine()
	}
}

// The type owed is the work that a worker has to do once it has unlocked the guard.
type owed struct {
	leave *task // the task for which ends(err) must be called, or nil
	err   error
	after interface{ start() } // a delay or a batch
	dues
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

// A worker runs one handler after another. The guard protects its fields, except where a comment names another owner.
type worker struct {
	p     *Pool
	index int // the index in p.workers
	run   func()
	gid   int64
	at    *core // the stage that the worker serves
	task  *task
	r     suspend.Resumer[wake] // resumes the worker while it is idle

	now   int64 // used only by the worker, like the fields below
	label *core
	owed  owed
}

func (p *Pool) startWorker() {
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

type wake uint8

const (
	dismissed wake = iota
	found          // the worker has found work and taken a permit
	called         // the worker was given a permit, and counts as coming
)

// An idling is the Source with which a worker on plain goroutines waits for work. Pool.tick dismisses the worker after one to two
// seconds.
type idling struct{ w *worker }

func (i idling) Guard() *suspend.Guard { return &i.w.p.guard }

func (i idling) Try() (wake, bool, error) {
	p := i.w.p
	switch {
	case p.running < p.width && p.nextStage() != nil:
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

// endWorker removes w from the list of workers. The caller must hold p.guard, and endWorker unlocks it before it returns.
func (p *Pool) endWorker(w *worker) {
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
	p.unlockAndPay()
	letGo()
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

// letGo ends the hold if no task, no function that was cut off, and no worker is left. The caller must hold p.guard, and must call the
// returned function without it.
func (p *Pool) letGo() (release func()) {
	if p.held == nil || p.alive+p.waiting+p.delayed+p.cut > 0 {
		return func() {}
	}
	release, p.held = p.held, nil
	return release
}

// settleIf wakes the callers of Shutdown if the stage is closed and empty. The caller must hold the guard.
func (c *core) settleIf() {
	if c.closed && c.inside() == 0 { // stays true, because a closed stage accepts nothing
		c.gone()
		c.closers.ResumeAll(struct{}{}, nil)
	}
}

// gone removes c, which is closed and empty, from its pool. If no open stage is left, gone dismisses the idle workers.
func (c *core) gone() {
	if c.listed {
		c.unlist()
	}
	p := c.pool
	if p.open--; p.open == 0 {
		p.dismiss(len(p.idle))
		p.wakeClosers()
	}
}

// wakeClosers wakes the callers of Shutdown that wait for the workers, if all workers have ended.
func (p *Pool) wakeClosers() {
	if p.open == 0 && p.alive == 0 {
		p.closers.ResumeAll(struct{}{}, nil)
	}
}

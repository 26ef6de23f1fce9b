package stage

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Pool is a number of workers, on any scheduler, that several stages may share. At most Width handlers run
// together; a handler that waits for room in another stage does not count while it waits. The pool serves the stage whose
// first task has waited longest, so that no stage starves.
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
// Debt: a critical section that adds work or frees a permit must call due before the unlock; release calls it, and pays the
// dues.
type Pool struct {
	name   string
	on     suspend.Spawner
	inline bool // whether on can be compared
	linger bool
	clock  suspend.Clock   // the clock of on; nil means package time
	timers suspend.Spawner // nil means package time

	guard    suspend.Guard // guards the rest, and all stages of the pool
	width    int
	running  int // permits taken: workers coming or running
	coming   int
	alive    int // workers that have not ended
	waiting  int // tasks of all stages
	delayed  int
	suspects *suspect // waits that may be without end from now on
	open     int      // stages that are not closed, or not empty
	loaded   []*core  // stages with tasks that wait, and some that had
	tickets  uint64
	idle     []*worker // the last is the next to be woken
	least    int       // the smallest number of idle workers since the last tick
	ticking  bool
	refused  bool                              // the Spawner on is closed, so that goroutines take over
	held     func()                            // ends the hold of on; nil means that on is not held
	closers  suspend.Queue[struct{}, struct{}] // callers of Close that wait for the last worker
	workers  []*worker
	spare    []*worker

	making atomicx.Mutex // guards funcs
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
	blocked   int       // tasks in progress that wait for another task, or for room
	asking    []*asking // known waits of tasks in progress for a Do or for room
	seen      uint64    // the number of the last look that came here
	lent      int       // tasks for which a handler of this stage waits, or has waited, by a chain of Dos
	lentLater int       // lent tasks between two tries
	waiting   int
	progress  int // tasks in slots, or given up
	givenUp   int // tasks in OnFail, which keep their room until it returns
	delayed   int
	closed    bool
	listed    bool
	index     int  // its place in the pool's list
	cut       bool // Close has given up waiting
	blocking  context.Context
	unblock   func(cause error)
	closers   suspend.Queue[struct{}, struct{}] // callers of Close that wait for tasks
	rejects   int                               // counted since the last sweep
	shed      shedder
	paced     bool // Rate or Gather is set
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
	drop(t *task, err error) (tell func()) // gives up t, which waits; tell must be called without the guard
}

// dues are the work that is left to do after a critical section of pool.
type dues struct {
	pool     *Pool
	starts   int // workers, which have their permits
	suspects *suspect
}

// A suspect is a wait that a release is to look at, in a list.
type suspect struct {
	a    *asking
	next *suspect
}

// counts are the figures that only grow, with their histograms.
type counts struct {
	arrived, accepted, rejected uint64
	late, cancelled             uint64
	completed, failed           uint64
	retried, dropped            uint64
	wait, service               Histogram
	crowded                     atomicx.Bool // a task was rejected: look for room before one is made
}

// A window has the figures of the next Sample, under the guard.
type window struct {
	since   int64
	started bool
	least   int
	done    int
	dropped uint64 // the count of the stage when it began
	service int64
}

// A pace is the limit of Options.Rate: the generic cell rate algorithm. Handlers begin as fast as they like while next is not in
// the future, and each moves it by every.
type pace struct {
	every, slack int64 // an every of 0 means no limit
	next         int64
	started      bool
}

// A worker runs one handler after another. Its fields are under the guard, except where a comment names another owner.
type worker struct {
	p     *Pool
	index int // its place in p.workers
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
	dues
}

type wake uint8

const (
	dismissed wake = iota
	found          // work, with a permit
	called         // has a permit, and counts as coming
)

// An asking is a handler that waits: for the task of its Do, or for room for a task. While it waits, it is in the list of its stage.
//
// A handler that waits keeps its slot, so handlers may wait for each other's slots without end: where each slot of a stage is held by a handler
// that waits for a slot of another, and so on around. Chandy, Misra and Haas call this the OR model: a task in a queue can go on as soon as any
// slot of the stage is given back. So there is a deadlock if no handler that is reached from here runs.
//
// Invariant: each asking can go on, or is a suspect of a pool, or reaches such a suspect.
// Debt: a suspect is added when a wait begins (block), when its task enters a queue (pass, tryAgain, letIn), and when a stage loses what let it go
// on (lose). The release that follows must look at it; otherwise a cycle could wait without end.
type asking struct {
	from  *core // the stage of the handler
	task  *task
	at    atomicx.Pointer[core] // the stage that task has entered last, or wants to enter
	in    atomicx.Pointer[core] // the same, while it waits there; changed under the guard of that stage
	ctx   context.Context       // the wait for room ends with it
	index int                   // its place in from.asking, under from's guard
	fails bool                  // it was in a cycle, and goes on. Under from's guard
	stop  func(cause error)     // ends a wait for room
}

// An item is a task in a stage.
type item[In, Out any] struct {
	t      *task
	way    *gate[In, Out] // says where the result goes
	in     In
	since  int64 // it was accepted
	ticket uint64
}

// left records that e is out of the queue.
func (e *item[In, Out]) left() {
	if a := e.t.asked; a != nil {
		a.in.Store(nil)
	}
}

// inside counts the accepted tasks that have not left the stage.
func (c *core) inside() int { return c.waiting + c.progress + c.delayed }

// queued counts n more in the queue.
func (c *core) queued(n int) {
	c.waiting += n
	c.pool.waiting += n
}

// postponed counts n more between two tries.
func (c *core) postponed(n int) {
	c.delayed += n
	c.pool.delayed += n
}

// room reports whether one more task is accepted; tasks that need no room do not count.
func (c *core) room() bool { return c.inside()-min(c.lent, c.slots) < c.bound() }

func (c *core) bound() int { return c.o.Queue + c.width*max(1, c.o.Batch) }

// free counts the slots for further handlers. A handler that waits for a task of its stage lends the slot to that task, so
// that at most width handlers run without waiting. Between two tries the slot stays with the task.
func (c *core) free() int {
	if c.held {
		return 0
	}
	return c.width - c.slots + min(c.lent-c.lentLater, c.blocked)
}

// refuse counts a rejection.
func (c *core) refuse(err error) error {
	c.arrived++
	c.rejected++
	return err
}

// now is the time in nanoseconds since some moment; in a bubble of testing/synctest it is negative.
func (p *Pool) now() int64 {
	if p.clock != nil {
		return int64(p.clock.Now().Sub(base))
	}
	return int64(time.Since(base))
}

var base = time.Now()

// A Stage is a queue in front of a handler. It is made by New or NewBatch. Its tasks wait in the queue, then a worker of
// its pool runs the handler with each. The arrows name the worker, -W>, the timer of a retry, -T>, and Close, -X>.
//
//	outside  -W> waiting            there is room, as a task has left the stage
//	waiting  -W> busy               a worker takes the first, and a slot
//	busy     -W> blocked            the next stage of the pipe is full
//	busy, blocked -W> out           completed, failed, late or cancelled
//	busy     -W> delayed            Retry says so
//	delayed  -T> waiting            in front
//	waiting, delayed -X> out        failed with ErrClosed
//
// Invariant: accepted = completed + failed + late + cancelled + waiting + in progress + delayed.
// Invariant: a task waits outside only while waiting + in progress + delayed reach the bound.
// Debt: whatever takes a task out of the stage must call admit; otherwise a caller would wait outside beside a free place.
type Stage[In, Out any] struct {
	core
	f         func(ctx context.Context, in In) (Out, error)
	batchFunc func(ctx context.Context, in []In, out []Out) error
	onFail    func(ctx context.Context, in In, err error)
	priority  func(in In) int
	entry     gate[In, Out] // where Do, Begin and Submit hand in
	ring      ring[item[In, Out]]
	urgent    []ring[item[In, Out]] // tasks of a priority above 0, which begin before
	hurry     ring[item[In, Out]]   // tasks for which a handler of this stage waits: they begin first
	outside   suspend.Queue[struct{}, outsider[In, Out]]
	later     map[*delay[In, Out]]struct{}
}

// lent is the ticket of a task for which a handler of the same stage waits.
const lent = 0

// A gate is a stage, and where its results go.
type gate[In, Out any] struct {
	s  *Stage[In, Out]
	to port[Out]
}

// A port is where values go: a stage with what follows it. A nil port is the end of the way.
type port[T any] interface {
	// put hands t over with v, and waits with ctx if it has to; from is the stage whose handler calls, if any.
	put(ctx context.Context, t *task, v T, h how, from *core) error

	// pass is put for a worker of from, if there is room at once. Then it returns the dues of the next stage, and true with
	// the guard of from held, so that the task leaves from and enters the next stage in one step.
	pass(t *task, v T, now int64, from *core) (due dues, ok bool)

	// full returns the error with which a task is sure to be rejected now, and counts the rejection.
	full(h how) error
}

// how is the choice between waiting and rejecting.
type how uint8

const (
	asFull how = iota // Options.Full decides
	never             // reject
	always            // wait
)

func (c *core) setWidth(n int) {
	c.width = n
	if c.o.Pool == nil {
		c.pool.width = n
	}
	c.lose()
}

// settleIf is called after a task is counted out of the stage, and when the stage is closed.
func (c *core) settleIf() {
	if c.closed && c.inside() == 0 { // stays true, since nothing is accepted any more
		c.gone()
		c.closers.ResumeAll(struct{}{}, nil)
	}
}

// gone takes c, which is closed and empty, off its pool. With the last stage the idle workers leave.
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

// wakeClosers wakes the callers of Close that wait for the workers.
func (p *Pool) wakeClosers() {
	if p.open == 0 && p.alive == 0 {
		p.closers.ResumeAll(struct{}{}, nil)
	}
}

// moved records that the task of a is in the queue of c, or waits outside c.
func (a *asking) moved(c *core) {
	a.at.Store(c)
	a.in.Store(c)
}

// suspect makes the next release look at a, if there is one.
func (p *Pool) suspect(a *asking) {
	if a != nil {
		p.suspects = &suspect{a, p.suspects}
	}
}

// lose is called when c has lost what let waits for it go on: a handler, a part of the width, a hold, a task that was given up.
func (c *core) lose() {
	if n := len(c.asking); n > 0 && n == c.slots && c.free() <= 0 {
		c.pool.suspect(c.asking[0])
	}
}

// admits reports whether there is room for t, or t needs none.
func (c *core) admits(t *task) bool { return c.room() || c.needsNone(t) }

// needsNone reports whether t needs no room, because a handler of the stage waits for it. A handler waits for one task only:
// the Dos of further lent tasks were cancelled, and t waits until those tasks are out.
func (c *core) needsNone(t *task) bool { return c.lent < c.slots && c.lends(t) }

// lends reports whether a handler of c waits for t, by a chain of Dos. Then t begins in the slot of that handler; otherwise
// the handler would wait for itself.
func (c *core) lends(t *task) bool { return t.asked != nil && c.lendsByChain(t) }

func (c *core) lendsByChain(t *task) bool {
	for t.asked != nil && !t.gone.Load() {
		if t.asked.from == c {
			return true
		}
		t = t.parent
	}
	all, ok := t.values.(several)
	return ok && all.lends(c)
}

// A several is the values of a context that belongs to several tasks: a batch.
type several interface {
	lends(c *core) bool
	has(t *task) bool
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

// list puts c on the list of its pool. next takes it off when it finds no task, and so does the end of the stage.
func (c *core) list() {
	p := c.pool
	c.listed, c.index = true, len(p.loaded)
	p.loaded = append(p.loaded, c)
}

func (s *Stage[In, Out]) oldest() uint64 {
	if s.hurry.len > 0 {
		return lent
	}
	return s.first().of(0).ticket
}

// outsider is the wait of a caller that has found the stage full. It is in s.outside while it waits.
type outsider[In, Out any] struct {
	g  *gate[In, Out]
	t  *task
	in In
	a  *asking // its handler, if it is one
}

// A delay is a task between two tries. It is in s.later from postpone until the timer, the end of its context, or Close takes
// it out.
type delay[In, Out any] struct {
	s     *Stage[In, Out]
	e     item[In, Out]
	after time.Duration
	stop  []func() bool // the timer, and the look at the context; nil until start has made them; under the guard
}

// line returns where t waits.
func (s *Stage[In, Out]) line(t *task) *ring[item[In, Out]] { return s.lineOf(int(t.level)) }

func (s *Stage[In, Out]) lineOf(level int) *ring[item[In, Out]] {
	if s.urgent == nil || level == 0 {
		return &s.ring
	}
	return &s.urgent[level-1]
}

// first returns the line of the task that begins next.
func (s *Stage[In, Out]) first() *ring[item[In, Out]] {
	if s.hurry.len > 0 {
		return &s.hurry
	}
	for level := len(s.urgent); level > 0; level-- {
		if r := s.lineOf(level); r.len > 0 {
			return r
		}
	}
	return &s.ring
}

// levels is the number of priorities.
const levels = 4

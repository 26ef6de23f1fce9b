package stage

import (
	"context"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Stage is a queue in front of a handler. New and NewBatch make a Stage. Tasks wait in the queue until a worker of the pool runs
// the handler with them. In the diagram, -W> is a worker, -T> the timer of a retry, and -X> Close.
//
//	outside  -W> waiting            a task has left the stage, so there is room
//	waiting  -W> busy               a worker takes the first task, and a slot
//	busy     -W> blocked            the next stage of the pipe is full
//	busy, blocked -W> out           completed, failed, late or cancelled
//	busy     -W> delayed            Retry returned true
//	delayed  -T> waiting            at the front of the queue
//	waiting, delayed -X> out        failed with ErrClosed
//
// Invariant: accepted = completed + failed + late + cancelled + waiting + in progress + delayed.
// Invariant: a task waits outside only while the sum waiting + in progress + delayed has reached the bound.
// Debt: code that takes a task out of the stage must call s.admit; otherwise a caller would wait outside although there is room.
type Stage[In, Out any] struct {
	core
	f         func(ctx context.Context, in In) (Out, error)
	batchFunc func(ctx context.Context, in []In, out []Out) error
	onFail    func(ctx context.Context, in In, err error)
	priority  func(in In) int
	entry     gate[In, Out]                              // the gate of Do, Begin and Submit
	ring      ring[item[In, Out]]                        // queued tasks of priority 0
	urgent    []ring[item[In, Out]]                      // queued tasks of each priority above 0, which begin earlier
	hurry     ring[item[In, Out]]                        // queued lent tasks, which begin first
	outside   suspend.Queue[struct{}, outsider[In, Out]] // callers that wait for room
	later     map[*delay[In, Out]]struct{}               // delayed tasks
}

// A core is the part of a stage that does not depend on its type parameters, so that the pool can use it.
type core struct {
	name   string
	pool   *Pool
	o      Options
	server server
	labels context.Context
	errs   stageErrors

	// The pool's guard protects the fields below.
	width     int
	reason    string    // the reason of the last change of width
	slots     int       // handlers that run or wait
	blocked   int       // tasks in progress that wait for another task, or for room
	asking    []*asking // the known waits of tasks in progress, for a Do or for room
	seen      uint64    // the number of the last search that visited the stage
	lent      int       // tasks for which a handler of this stage waits, or has waited, directly or through a chain of Dos
	lentLater int       // lent tasks that are delayed
	waiting   int
	progress  int // tasks in slots, and tasks that were given up while queued
	givenUp   int // tasks that were given up while queued, and keep their room until OnFail returns
	delayed   int
	closed    bool
	listed    bool
	index     int  // the index in pool.loaded
	cut       bool // a Close, or a Shutdown that was cancelled, has cut off the tasks
	blocking  context.Context
	unblock   func(cause error)
	closers   suspend.Queue[struct{}, struct{}] // callers of Shutdown that wait for the tasks
	rejects   int                               // rejections since the last sweep
	shed      shedder
	paced     bool // Rate or Gather is set
	pace      pace
	gathering bool // the stage is held for Gather, and not for Rate alone
	held      bool // a worker waits until the next handler may begin
	ripe      bool // the worker has waited long enough
	holder    suspend.Queue[struct{}, struct{}]
	limiting  bool
	window    window
	counts
}

// A server is a *Stage[In, Out], for any In and Out.
type server interface {
	oldest() uint64 // the ticket of the first task in the queue
	serve(w *worker)
	admit(now int64)
	drop(t *task, err error) (tell func()) // gives up the queued task t; the caller must call tell without the guard
}

// The type counts has the counters and histograms of a stage. No value in it ever decreases.
type counts struct {
	arrived, accepted, rejected uint64
	late, cancelled             uint64
	completed, failed           uint64
	retried, dropped            uint64
	unretried                   atomicx.Uint64
	wait, service               Histogram
	crowded                     atomicx.Bool // a task has been rejected, so gate.full checks for room before a task is allocated
}

// refused returns the number of tasks that were rejected, shed or displaced.
func (c *counts) refused() uint64 { return c.rejected + c.late }

// A window collects the figures of the next Sample. The guard protects it.
type window struct {
	since   int64
	started bool
	least   int
	done    int
	failed  int
	dropped uint64 // the value of counts.dropped when the window began
	refused uint64 // the value of counts.refused() when the window began
	service int64
}

// A pace implements Options.Rate by the generic cell rate algorithm. A handler may begin once the time pace.next has passed. When a
// handler begins, pace.every is added to pace.next.
type pace struct {
	every, slack int64 // nanoseconds; if pace.every is 0, there is no limit
	next         int64
	started      bool
}

// An item is a task in a stage, with its input.
type item[In, Out any] struct {
	t      *task
	way    *gate[In, Out] // determines where the result goes
	in     In
	since  int64 // the time at which the task entered the queue
	ticket uint64
}

// left records that e is no longer in the queue.
func (e *item[In, Out]) left() {
	if a := e.t.asked; a != nil {
		a.in.Store(nil)
	}
}

// lent is the ticket of a lent task: a task for which a handler of the same stage waits.
const lent = 0

// A gate is an entrance to a stage. The gate determines where the results of the stage go.
type gate[In, Out any] struct {
	s  *Stage[In, Out]
	to port[Out] // the next stage; nil if s is the last
}

// A port is an entrance to a flow that accepts values of type T. A nil port is the end of the flow.
type port[T any] interface {
	// put hands in the task t with the input v. If there is no room, put may wait for it, but only until ctx is done. The
	// parameter from is the stage whose handler is the caller, or nil.
	put(ctx context.Context, t *task, v T, h how, from *core) error

	// pass is the form of put for the workers of the previous stage, and never waits. If there is room, pass returns the dues of the
	// next stage and true. The guard of the previous stage is then held, so that the task leaves it and enters the next stage in one
	// step.
	pass(t *task, v T, now int64, from *core) (due dues, ok bool)

	// full returns the error with which a task would certainly be rejected now, and counts the rejection. full returns nil if a call
	// of put would accept the task or wait.
	full(h how) error
}

// The type how says whether a full stage makes the caller wait or rejects the task.
type how uint8

const (
	asFull how = iota // Options.Full decides
	never             // the stage rejects the task
	always            // the caller waits
)

// An outsider is a caller that waits for room because the stage is full. During the wait, the outsider is in s.outside.
type outsider[In, Out any] struct {
	g  *gate[In, Out]
	t  *task
	in In
	a  *asking // the wait, if the caller is a handler
}

// A delay is a task between two tries. s.later contains the delay from the call of postpone until the timer fires, the context of
// the task ends, or Close takes the task.
type delay[In, Out any] struct {
	s     *Stage[In, Out]
	e     item[In, Out]
	after time.Duration
	stop  []func() bool // functions that stop the timer and the AfterFunc of the context; nil until start() has run; protected by the guard
}

// inside returns the number of accepted tasks that have not left the stage.
func (c *core) inside() int { return c.waiting + c.progress + c.delayed }

// queued adds n, which may be negative, to the number of queued tasks.
func (c *core) queued(n int) {
	c.waiting += n
	c.pool.waiting += n
}

// postponed adds n, which may be negative, to the number of delayed tasks.
func (c *core) postponed(n int) {
	c.delayed += n
	c.pool.delayed += n
}

// room reports whether there is room for another task. Lent tasks need no room and do not count.
func (c *core) room() bool { return c.inside()-min(c.lent, c.slots) < c.bound() }

func (c *core) bound() int { return c.o.Queue + c.width*max(1, c.o.Batch) }

// free returns the number of slots that are free for handlers. A handler that waits for a task of its own stage lends its slot to
// that task, so that at most width handlers run at a time, not counting waiting handlers. While the task is delayed, no other task
// gets the slot.
func (c *core) free() int {
	if c.held {
		return 0
	}
	return c.width - c.slots + min(c.lent-c.lentLater, c.blocked)
}

// refuse counts a rejection, and returns err.
func (c *core) refuse(err error) error {
	c.arrived++
	c.rejected++
	return err
}

// admits reports whether t may enter the queue, because there is room or because t needs no room.
func (c *core) admits(t *task) bool { return c.room() || c.needsNone(t) }

// needsNone reports whether t needs no room, because a handler of the stage waits for it. Each handler waits for one task only. If
// as many tasks are lent as there are handlers, the Dos of some were cancelled, and t needs room until these tasks leave the stage.
func (c *core) needsNone(t *task) bool { return c.lent < c.slots && c.lends(t) }

// lends reports whether a handler of c waits for t, directly or through a chain of Dos. If so, t begins in the slot of that handler;
// otherwise the handler would wait for itself.
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

// The type several is the interface of the base context of a batch, which belongs to several tasks.
type several interface {
	lends(c *core) bool
	has(t *task) bool
}

// list adds c to the list of its pool. c.unlist removes c later: p.nextStage calls unlist when c has no queued task, and c.gone calls it
// when c is closed and empty.
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

func (s *Stage[In, Out]) oldest() uint64 {
	if s.hurry.len > 0 {
		return lent
	}
	return s.first().of(0).ticket
}

// line returns the ring in which t waits.
func (s *Stage[In, Out]) line(t *task) *ring[item[In, Out]] { return s.lineOf(int(t.level)) }

func (s *Stage[In, Out]) lineOf(level int) *ring[item[In, Out]] {
	if s.urgent == nil || level == 0 {
		return &s.ring
	}
	return &s.urgent[level-1]
}

// first returns the ring of the task that begins next.
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

// An asking is a wait in a handler, for the task of its Do or for room. During the wait, the asking is in the list of the handler's
// stage.
//
// A handler keeps its slot while it waits, so handlers may wait for each other's slots without end. The handlers then form a circle:
// they hold every slot of a stage, and wait for a slot of the next stage of the circle. Such waits follow the OR model of Chandy,
// Misra and Haas, because a queued task can begin as soon as any slot of its stage is free. There is a deadlock if no running
// handler can be reached by following the waits.
//
// Invariant: each asking can go on, or is a suspect of a pool, or a suspect can be reached by following the waits.
// Debt: code must add a suspect when a wait begins (block), when the task enters a queue (pass, tryAgain, letIn), and when a stage
// loses a handler or a slot that could end a wait (lose). The call of unlockAndPay that follows must examine the suspect; otherwise a
// cycle could wait without end.
type asking struct {
	from  *core // the stage of the handler
	task  *task
	at    atomicx.Pointer[core] // the stage that the task has entered last, or wants to enter
	in    atomicx.Pointer[core] // the stage in which the task waits, or nil; written under the guard of that stage
	ctx   context.Context       // the context of a wait for room; nil for a Do
	index int                   // the index in from.asking; protected by the guard of that stage
	fails bool                  // the wait was in a cycle, and has been ended; protected like the index
	stop  func(cause error)     // ends a wait for room; nil for a Do
}

// A suspect is a wait that the next call of unlockAndPay examines for a cycle. Suspects form a list.
type suspect struct {
	a    *asking
	next *suspect
}

// moved records that the task of a is in the queue of c, or waits for room in c.
func (a *asking) moved(c *core) {
	a.at.Store(c)
	a.in.Store(c)
}

// suspect makes the next call of unlockAndPay examine a, unless a is nil.
func (p *Pool) suspect(a *asking) {
	if a != nil {
		p.suspects = &suspect{a, p.suspects}
	}
}

// lose adds a suspect if every handler of c waits and no slot is free. Call lose after each change that may have this effect: a
// handler or a hold has ended, the width has shrunk, or a task was given up.
func (c *core) lose() {
	if n := len(c.asking); n > 0 && n == c.slots && c.free() <= 0 {
		c.pool.suspect(c.asking[0])
	}
}

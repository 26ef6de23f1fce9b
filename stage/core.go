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
	entry     entrance[In, Out]                          // Do, Begin and Submit use it
	ring      ring[item[In, Out]]                        // queued tasks of priority 0
	urgent    []ring[item[In, Out]]                      // queued tasks of each priority above 0, which begin earlier
	hurry     ring[item[In, Out]]                        // queued lent tasks, which begin first
	outside   suspend.Queue[struct{}, outsider[In, Out]] // callers that wait for room
	later     map[*delay[In, Out]]struct{}               // delayed tasks
}

// A core is the part of a stage that does not depend on its type parameters, so that the pool can use it. Its fields that change are in
// three types: the queue says where the tasks are, the slots which handlers may run, and the waits which of these handlers cannot go on. The
// methods core.room, core.needsNone and core.free decide about the next task, across these types.
type core struct {
	name   string
	pool   *Pool
	o      Options
	server server
	labels context.Context
	errs   stageErrors

	// The pool's guard protects the fields below.
	queue
	slots
	waits
	counts
}

// A server is a *Stage[In, Out], for any In and Out.
type server interface {
	oldest() uint64 // the ticket of the first task in the queue
	serve(w *worker)
	admit(now int64)
	drop(t *task, err error) (tell func()) // gives up the queued task t; the caller must call tell without the guard
}

// A queue holds the numbers of the tasks that are in a stage, and its end.
//
// Invariant: the stage is in pool.loaded if a task is queued. (The converse may fail: p.nextStage removes a stage without queued tasks.)
// Invariant: pool.waiting and pool.delayed are the sums of the fields waiting and delayed of the pool's stages.
// Invariant: once closed is set, no task enters. Once cut is set, no task is queued or delayed.
// Debt: code that takes the last task out of a closed stage must call settleIf; otherwise a Shutdown would wait without end.
type queue struct {
	waiting  int // queued tasks
	progress int // tasks in slots, and tasks that were given up while queued
	givenUp  int // tasks that were given up while queued, and keep their room until OnFail returns
	delayed  int // tasks between two tries
	rejects  int // rejections since the last sweep
	shed     shedder

	listed  bool // the stage is in pool.loaded
	index   int  // the index in pool.loaded
	closed  bool
	cut     bool                              // a Close, or a Shutdown that was cancelled, has cut off the tasks
	closers suspend.Queue[struct{}, struct{}] // callers of Shutdown that wait for the tasks
}

// inside returns the number of accepted tasks that have not left the stage.
func (q *queue) inside() int { return q.waiting + q.progress + q.delayed }

// An item is a task in a stage, with its input.
type item[In, Out any] struct {
	t      *task
	way    *entrance[In, Out] // determines where the result goes
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

// The type slots says how many handlers of a stage may run, and when the next one may begin. A task has a slot from the beginning of its
// handler until it leaves the stage or is delayed: also while OnFail runs, and while a worker waits for room in the next stage.
//
// Invariant: a task begins only while core.free is positive. So at most width handlers run, not counting those that wait, except after the
// width has shrunk, or after a wait has ended whose slot was lent.
// Invariant: at most one worker holds the stage, that is, waits in core.hold. Meanwhile no task begins.
// Debt: code that ends the reason of a hold must call letBegin, and code that shrinks pace.next must wake the queue holder.
type slots struct {
	width    int
	reason   string // the reason of the last change of width
	taken    int    // handlers that run or wait
	limiting bool   // Options.Limit is being called
	window   window

	paced     bool // Rate or Gather is set
	pace      pace
	held      bool // a worker waits until the next handler may begin
	gathering bool // the stage is held for Gather, and not for Rate alone
	ripe      bool // the worker has waited long enough, so the next handler begins without a look at the time
	holder    suspend.Queue[struct{}, struct{}]
}

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

// The type waits has the handlers of a stage that wait for another task, or for room.
//
// Invariant: len(asking) <= blocked <= slots.taken. A wait may be unknown, and a handler keeps its slot while it waits.
// Invariant: lentLater <= lent. A handler lends its slot to one task, so at most min(lent-lentLater, blocked) slots are lent to tasks that
// can begin. The number lent may be larger than the number of handlers, after Dos were cancelled.
// Debt: see asking.
type waits struct {
	blocked   int       // tasks in progress that wait for another task, or for room
	asking    []*asking // the known waits of tasks in progress, for a Do or for room
	seen      uint64    // the number of the last search that visited the stage
	lent      int       // tasks for which a handler of this stage waits, or has waited, directly or through a chain of Dos
	lentLater int       // lent tasks that are delayed

	blocking context.Context // the context of the workers that wait for room in the next stage with submitted tasks; made when it is needed
	unblock  func(cause error)
}

// An asking is a wait in a handler, for the task of its Do or for room. During the wait, the asking is in the list of the handler's
// stage.
//
// A handler keeps its slot while it waits, so handlers may wait for each other's slots without end. The handlers then form a cycle:
// they hold every slot of a stage, and wait for a slot of the next stage of the cycle. Such waits follow the OR model of Chandy,
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

// The type counts has the counters and histograms of a stage. No value in it ever decreases.
type counts struct {
	arrived, accepted, rejected uint64
	late, cancelled             uint64
	completed, failed           uint64
	retried, dropped            uint64
	unretried                   atomicx.Uint64
	wait, service               Histogram
	crowded                     atomicx.Bool // a task has been rejected, so entrance.full checks for room before a task is allocated
}

// refused returns the number of tasks that were rejected, shed or displaced.
func (c *counts) refused() uint64 { return c.rejected + c.late }

// An entrance leads to a stage, and determines where the results of the stage go.
type entrance[In, Out any] struct {
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
	asFull how = iota // Options.Reject decides
	never             // the stage rejects the task
	always            // the caller waits
)

// An outsider is a caller that waits for room because the stage is full. During the wait, the outsider is in s.outside.
type outsider[In, Out any] struct {
	g  *entrance[In, Out]
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

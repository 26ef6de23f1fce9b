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

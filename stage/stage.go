package stage

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"time"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// Full is the choice of a stage whose queue is full.
type Full uint8

const (
	FullWait   Full = iota // the caller suspends until there is room
	FullReject             // the call fails with ErrFull
)

// NoQueue is the Queue of a stage in which no task waits.
const NoQueue = -1

// Options are the choices that a stage is made with. The zero value is one task at a time, and one that waits.
type Options struct {
	// Width is the number of tasks in progress at a time; zero is 1, or the width of Pool. Queue is the number that wait; zero
	// is Width. A task is accepted while those that wait, are in progress or are delayed are fewer than Queue plus Width.
	Width, Queue int

	// Full decides on Submit, Do and Begin when the queue is full. Between the stages of a Pipe it is always FullWait.
	Full Full

	// Delay sheds load by time: once every task of the last 100 ms has waited longer than Delay, a task that has waited longer
	// than twice Delay fails with ErrLate instead of beginning. For 100 ms after such a time, every task of the last Delay is
	// enough to begin again. Zero sheds nothing.
	Delay time.Duration

	// LIFO begins the youngest task first.
	LIFO bool

	// On is the scheduler of the handlers; nil is plain goroutines. Pool, if not nil, is shared with other stages, and On is
	// the pool's.
	On   suspend.Spawner
	Pool *Pool

	// Limit decides on the width; nil keeps it. A Limit belongs to one stage.
	Limit Limiter

	// Batch is the number of tasks that the function of a NewBatch gets at most; zero is 64. Gather is how long a batch that is
	// not full waits for more, from the acceptance of its first task on, by the clock of the scheduler; zero is not at all.
	// Close ends the wait.
	Batch  int
	Gather time.Duration

	// Rate is the number of handlers that begin in a second, at most; zero sets no limit. A batch is one, and so is each try.
	// Meanwhile tasks wait in the queue. After a pause, Burst handlers begin at once; zero is those of 10 ms, but at least one.
	Rate  float64
	Burst int

	// Retry is asked when a handler has failed for the try'th time, from 1 on. Again says to begin the task again, after a
	// while. Meanwhile the task keeps its place in the stage, so retries do not get round the bound.
	Retry func(err error, try int) (after time.Duration, again bool)

	// OnPanic is called with the value and the stack of a handler that panicked. The task then fails with a *suspend.PanicError. By
	// default the panic goes on in the worker: on goroutines, it ends the process.
	OnPanic func(value any, stack []byte)
}

// The errors of this package. A stage returns its own, which say its name, and are these in the sense of errors.Is.
var (
	ErrOverload  = errors.New("stage: overload")
	ErrFull      = fmt.Errorf("%w: queue full", ErrOverload)                                 // the task was not accepted
	ErrLate      = fmt.Errorf("%w: waited too long", ErrOverload)                            // it was accepted, and shed
	ErrDisplaced = fmt.Errorf("%w: a task of a higher priority took its place", ErrOverload) // it was accepted, and shed
	ErrClosed    = fmt.Errorf("stage: closed: %w", suspend.ErrClosed)
	ErrCycle     = errors.New("stage: a cycle of Dos") // says which stages wait for each other
	ErrEnded     = errors.New("stage: the task of this context has ended")
	ErrAbandoned = errors.New("stage: a handler did not return")
)

// A stageError is made once for each stage, so that a rejection allocates nothing.
type stageError struct {
	stage string
	error
}

func (e *stageError) Error() string { return e.stage + ": " + e.error.Error() }
func (e *stageError) Unwrap() error { return e.error }

type stageErrors struct{ full, late, displaced, closed error }

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
// Debt: the one that takes a task out of the stage owes a call of admit.
type Stage[In, Out any] struct {
	core
	f        func(ctx context.Context, in In) (Out, error)
	batch    func(ctx context.Context, in []In, out []Out) error
	onFail   func(ctx context.Context, in In, err error)
	priority func(in In) int
	entry    gate[In, Out] // where Do, Begin and Submit hand in
	ring     ring[item[In, Out]]
	urgent   []ring[item[In, Out]] // tasks of a priority above 0, which begin before
	hurry    ring[item[In, Out]]   // tasks for which a handler of this stage waits: they begin first
	outside  suspend.Queue[struct{}, outsider[In, Out]]
	later    map[*delay[In, Out]]struct{}
}

// An item is a task in a stage.
type item[In, Out any] struct {
	t      *task
	way    *gate[In, Out] // says where the result goes
	in     In
	since  int64 // it was accepted
	ticket uint64
}

// lent is the ticket of a task for which a handler of its own stage waits.
const lent = 0

// New returns a stage that calls f with each task, Width at a time, while Queue tasks wait. It starts nothing: workers are
// started by tasks, and leave when there are none.
func New[In, Out any](name string, f func(ctx context.Context, in In) (Out, error), o Options) *Stage[In, Out] {
	if f == nil {
		panic("stage: nil function")
	}
	o.Batch = 0
	s := newStage[In, Out](name, o)
	s.f = f
	return s
}

func newStage[In, Out any](name string, o Options) *Stage[In, Out] {
	if o.Queue < NoQueue || o.Width < 0 || o.Batch < 0 {
		panic("stage: negative Width, Queue or Batch")
	}
	if o.Gather < 0 || o.Burst < 0 || !(o.Rate >= 0) {
		panic("stage: negative Gather, Rate or Burst")
	}
	p := o.Pool
	switch {
	case p == nil:
		o.Width = max(o.Width, 1)
		p = NewPool(name, o.Width, o.On)
	case o.Width == 0:
		o.Width = p.width
	}
	switch o.Queue {
	case 0:
		o.Queue = o.Width
	case NoQueue:
		o.Queue = 0
	}
	s := &Stage[In, Out]{core: core{name: name, pool: p, o: o, width: o.Width}}
	s.entry.s = s
	s.server = s
	s.errs = stageErrors{&stageError{name, ErrFull}, &stageError{name, ErrLate}, &stageError{name, ErrDisplaced}, &stageError{name, ErrClosed}}
	s.labels = pprof.WithLabels(context.Background(), pprof.Labels("stage", name))
	s.shed.target = int64(o.Delay)
	s.pace.set(o)
	s.paced = o.Rate > 0 || o.Gather > 0
	p.guard.Lock()
	p.open++
	p.leaving.ResumeAll(struct{}{}, nil) // the workers may stay
	p.guard.Unlock()
	return s
}

// OnFail sets f to be called once for each accepted task that s gives up: it failed, for good, or was late, or was cut off by
// Close. It is the dead letter, called in place of the handler, and may suspend. A task that its own caller has cancelled
// is not reported. OnFail returns s; call it before the first task.
func (s *Stage[In, Out]) OnFail(f func(ctx context.Context, in In, err error)) *Stage[In, Out] {
	s.onFail = f
	return s
}

// SetWidth changes the number of tasks in progress at a time, and of the pool, unless that is shared. Handlers that run
// above it end in their own time.
func (s *Stage[In, Out]) SetWidth(n int) {
	if n < 1 {
		panic("stage: a stage without a width")
	}
	s.pool.guard.Lock()
	s.setWidth(n)
	s.admit(s.pool.now())
	s.pool.release()
}

func (c *core) setWidth(n int) {
	c.width = n
	if c.o.Pool == nil {
		c.pool.width = n
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

// room reports whether one more is accepted, beside those that need no room.
func (c *core) room() bool { return c.inside()-min(c.lent, c.slots) < c.bound() }

func (c *core) bound() int { return c.o.Queue + c.width*max(1, c.o.Batch) }

func (s *Stage[In, Out]) oldest() uint64 {
	if s.hurry.len > 0 {
		return lent
	}
	return s.first().of(0).ticket
}

// accept puts a task in the queue.
func (s *Stage[In, Out]) accept(way *gate[In, Out], t *task, in In, now int64) {
	s.arrived++
	s.accepted++
	t.tries = 0
	if t.asked != nil {
		t.asked.moved(&s.core)
	}
	to, ticket := &s.hurry, uint64(lent)
	if s.lends(t) {
		s.lent++
	} else {
		to = s.line(t)
		s.pool.tickets++
		ticket = s.pool.tickets
	}
	e := to.back()
	e.t, e.way, e.in, e.since, e.ticket = t, way, in, now, ticket
	s.queued(1)
	if !s.listed {
		s.list()
	}
	if s.held {
		s.letBegin()
	}
}

// refuse counts a rejection.
func (c *core) refuse(err error) error {
	c.arrived++
	c.rejected++
	return err
}

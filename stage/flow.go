package stage

import (
	"context"

	"github.com/braidgo/braid/promise"
)

// A Flow takes tasks and answers them: a Stage, several behind one another, or several beside one another.
//
// A ctx that is done fails every method, and nothing is handed in. An error of Submit, of Begin, or of Do before the
// task was accepted means that no handler ran. If it is an ErrOverload, the task was rejected.
//
// With the context of a handler, the new task is a child of the handler's task. The parent is done, and its Do answered,
// when its handlers and all children are. The first error of any is its error. With the context of a task that has
// ended, every method fails with ErrEnded.
//
// What happens before a method is called happens before the handler; a handler happens before the handler of the next
// stage, before OnFail, and before the return of Do.
type Flow[In, Out any] interface {
	// Do hands in and waits for the answer. ctx is the task's: once it is done, a task that waits is not begun, and a
	// handler that runs sees it; Do returns the error of the cancellation at once, and the handler ends in its own time. Only
	// where the handler runs on the caller, Do returns when it does.
	Do(ctx context.Context, in In) (Out, error)

	// Begin hands in; the answer comes in the future. ctx is the task's, as with Do.
	Begin(ctx context.Context, in In) (promise.Future[Out], error)

	// Submit hands in, and nobody waits for the answer. ctx is for the way in only; handlers see its values, but not its
	// end. The handlers of a child see the end of the parent.
	Submit(ctx context.Context, in In) error

	// TrySubmit is Submit that never suspends: a full queue is ErrFull, whatever Full says.
	TrySubmit(ctx context.Context, in In) error

	// Close closes the stages of the flow: the stages of a Pipe in order, each drained before the next is closed, and replicas
	// in order. It returns the errors of all. A ctx that is done cuts off each, as the Close of a Stage says.
	Closer

	bind(to port[Out]) port[In]
	front() port[In]
	describe(to []Observed) []Observed
}

// Begin implements Flow.
func (s *Stage[In, Out]) Begin(ctx context.Context, in In) (promise.Future[Out], error) {
	return future[In, Out](ctx, &s.entry, in)
}

// Submit implements Flow.
func (s *Stage[In, Out]) Submit(ctx context.Context, in In) error {
	return submit(ctx, &s.entry, in, asFull)
}

// TrySubmit implements Flow.
func (s *Stage[In, Out]) TrySubmit(ctx context.Context, in In) error {
	return submit(ctx, &s.entry, in, never)
}

func (s *Stage[In, Out]) bind(to port[Out]) port[In] { return &gate[In, Out]{s, to} }
func (s *Stage[In, Out]) front() port[In]            { return &s.entry }

// A flow is a Flow that is made of others, wired once.
type flow[In, Out any] struct {
	in     port[In]
	wire   func(to port[Out]) port[In]
	stages func(to []Observed) []Observed
	parts  []Closer
}

// Pipe returns the flow that hands the answers of a to b. A worker of a that finds b full waits, without its permit of the
// pool but in its slot of the stage. Stages must not be piped in a circle, nor may a handler
// of b wait for a: two full stages would wait for each other.
func Pipe[A, B, C any](a Flow[A, B], b Flow[B, C]) Flow[A, C] {
	wire := func(to port[C]) port[A] { return a.bind(b.bind(to)) }
	return &flow[A, C]{wire(nil), wire, func(to []Observed) []Observed { return b.describe(a.describe(to)) }, []Closer{a, b}}
}

// Pipe3 is a Pipe of three.
func Pipe3[A, B, C, D any](a Flow[A, B], b Flow[B, C], c Flow[C, D]) Flow[A, D] {
	return Pipe(Pipe(a, b), c)
}

// Do implements Flow.
func (f *flow[In, Out]) Do(ctx context.Context, in In) (Out, error) {
	return do[In, Out](ctx, f.in, in)
}

// Begin implements Flow.
func (f *flow[In, Out]) Begin(ctx context.Context, in In) (promise.Future[Out], error) {
	return future[In, Out](ctx, f.in, in)
}

// Submit implements Flow.
func (f *flow[In, Out]) Submit(ctx context.Context, in In) error {
	return submit(ctx, f.in, in, asFull)
}

// TrySubmit implements Flow.
func (f *flow[In, Out]) TrySubmit(ctx context.Context, in In) error {
	return submit(ctx, f.in, in, never)
}

// Close implements Flow.
func (f *flow[In, Out]) Close(ctx context.Context) error { return Close(ctx, f.parts...) }

func (f *flow[In, Out]) bind(to port[Out]) port[In]        { return f.wire(to) }
func (f *flow[In, Out]) front() port[In]                   { return f.in }
func (f *flow[In, Out]) describe(to []Observed) []Observed { return f.stages(to) }

// Observed is something that has figures: a stage, whatever its types.
type Observed interface{ Stats() Stats }

// Stages returns the stages of a flow, in order.
func Stages[In, Out any](f Flow[In, Out]) []Observed { return f.describe(nil) }

func (s *Stage[In, Out]) describe(to []Observed) []Observed { return append(to, s) }

package stage

import (
	"context"
	"errors"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Flow accepts tasks and answers them. A Stage is a flow, and so are pipes of flows and replicas of a stage.
//
// If ctx is done, Do, Begin, Submit and TrySubmit fail, and no task is handed in. If Submit or Begin returns an error, or Do does so
// before the task is accepted, no handler has run. If this error is an ErrOverload, the task was rejected.
//
// A task handed in with the context of a handler is a child of the handler's task. The parent is done, and its Do answered, when its
// handlers and all its children are done. The parent's error is the first error among them. If ctx belongs to a task that has ended,
// Do, Begin, Submit and TrySubmit fail with an error that is suspend.ErrEnded.
//
// A call synchronizes before the start of its handler. The end of the handler synchronizes before the start of the next stage's
// handler, before OnFail, and before the return of Do.
type Flow[In, Out any] interface {
	// Do hands in a task and waits for the answer. ctx becomes the task's context: once ctx is done, a waiting task does not begin,
	// and a running handler sees the cancellation. Do returns the cancellation error at once, without waiting for the handler. There
	// are two exceptions. If the handler runs on the caller, Do returns after the handler. If ctx comes from suspend.Lazily, Do
	// returns when the task has ended.
	Do(ctx context.Context, in In) (Out, error)

	// Begin hands in a task and returns the future of its answer. ctx becomes the task's context, as with Do.
	Begin(ctx context.Context, in In) (promise.Future[Out], error)

	// Submit hands in a task without waiting for an answer. The end of ctx only ends the wait for room. Handlers see the values of
	// ctx, but not its cancellation. The handlers of a child see the cancellation of the parent.
	Submit(ctx context.Context, in In) error

	// TrySubmit is like Submit but never suspends. If the queue is full, TrySubmit returns ErrFull, even without
	// Options.Reject.
	TrySubmit(ctx context.Context, in In) error

	// Close and Shutdown close the stages of the flow: the stages of a Pipe in order, and replicas in order. Shutdown drains each stage
	// before it closes the next, and if ctx is done, cuts each stage off. Close cuts each stage off at once. The errors are joined with
	// errors.Join. See the methods of Stage.
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

func (s *Stage[In, Out]) bind(to port[Out]) port[In] { return &entrance[In, Out]{s, to} }
func (s *Stage[In, Out]) front() port[In]            { return &s.entry }

// A flow is a Flow that consists of other flows.
type flow[In, Out any] struct {
	in     port[In]
	wire   func(to port[Out]) port[In]
	stages func(to []Observed) []Observed
	parts  []Closer
}

// Pipe returns the flow that passes the results of the flow a to the flow b. A worker that finds b full waits, without its permit of
// the pool but in its slot of the stage. Do not pipe stages in a cycle, and do not let a handler of the second flow wait for the
// first: two full stages would wait for each other.
func Pipe[A, B, C any](a Flow[A, B], b Flow[B, C]) Flow[A, C] {
	wire := func(to port[C]) port[A] { return a.bind(b.bind(to)) }
	return &flow[A, C]{wire(nil), wire, func(to []Observed) []Observed { return b.describe(a.describe(to)) }, []Closer{a, b}}
}

// Do implements Flow.
func (f *flow[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	parent, from, err := enterDo(ctx, f.in)
	if err != nil {
		return out, err
	}
	return ask[In, Out](ctx, f.in, in, parent, from)
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

// Shutdown implements Flow.
func (f *flow[In, Out]) Shutdown(ctx context.Context) error { return Shutdown(ctx, f.parts...) }

// Close implements Flow.
func (f *flow[In, Out]) Close() error {
	var errs []error
	for _, part := range f.parts {
		errs = append(errs, part.Close())
	}
	return errors.Join(errs...)
}

func (f *flow[In, Out]) bind(to port[Out]) port[In]        { return f.wire(to) }
func (f *flow[In, Out]) front() port[In]                   { return f.in }
func (f *flow[In, Out]) describe(to []Observed) []Observed { return f.stages(to) }

func future[In, Out any](ctx context.Context, p port[In], in In) (promise.Future[Out], error) {
	parent, from, err := enterCall(ctx, p, asFull)
	if err != nil {
		return nil, err
	}
	c, err := handInWithReply[In, Out](ctx, p, in, parent, from, nil)
	if err != nil {
		return nil, err
	}
	return &c.reply.promise, nil
}

func submit[In any](ctx context.Context, p port[In], in In, h how) error {
	_, own := ctx.(*task)
	ends := !own && ctx.Done() != nil
	parent, from, err := enterCall(ctx, p, h)
	if err != nil {
		return err
	}
	t := &task{values: ctx, parent: parent}
	if parent != nil {
		t.until = likeOwner
	}
	if ends {
		t.values = context.WithoutCancel(ctx)
	}
	return handIn(ctx, t, p, in, h, from)
}

// enterCall checks whether a task may be handed in with ctx. The result parent is the task of ctx, which has adopted the new child. The
// result from is the stage whose handler is the caller.
func enterCall[In any](ctx context.Context, p port[In], h how) (parent *task, from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.full(h); err != nil {
		return nil, nil, err
	}
	return adopted(ctx)
}

// An Observed has statistics. Every Stage is an Observed, whatever its type parameters are.
type Observed interface{ Stats() Stats }

// Stages returns the stages of f, in order.
func Stages[In, Out any](f Flow[In, Out]) []Observed { return f.describe(nil) }

func (s *Stage[In, Out]) describe(to []Observed) []Observed { return append(to, s) }

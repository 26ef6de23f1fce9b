package stage

import (
	"context"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Flow takes tasks and answers them: a Stage, several behind one another, or several beside one another.
//
// A ctx that is done fails every method, and nothing is handed in. An error of Submit, of Begin, or of Do before the
// task was accepted means that no handler ran. If it is an ErrOverload, the task was rejected.
//
// If ctx is that of a handler, the task is a child of the handler's. The handler's task is done, and its Do answered,
// when the handlers and all children are. The first error of any is its error. With the context of a task that has
// ended, every method fails with ErrEnded.
//
// What happens before a method is called happens before the handler; a handler before that of the next stage, before
// OnFail, and before the return of Do.
type Flow[In, Out any] interface {
	// Do hands in and waits for the answer. ctx is the task's: once it is done, a task that waits is not begun, and a
	// handler that runs sees it; Do returns the error of the cancellation at once, and the handler ends in its own time.
	Do(ctx context.Context, in In) (Out, error)

	// Begin hands in; the answer comes in the future. ctx is the task's, as with Do.
	Begin(ctx context.Context, in In) (promise.Future[Out], error)

	// Submit hands over: nobody waits for the answer. ctx is for the way in only; handlers see its values, not its end.
	// Those of a child see the end of the task that they belong to.
	Submit(ctx context.Context, in In) error

	// TrySubmit is Submit that never suspends: a full queue is ErrFull, whatever Full says.
	TrySubmit(ctx context.Context, in In) error

	bind(to port[Out]) port[In]
	front() port[In]
	describe(to []Observed) []Observed
}

// how is the choice between waiting and rejecting.
type how uint8

const (
	asFull how = iota // Options.Full decides
	never             // reject
	always            // wait
)

// A port is where values go: a stage with what follows it, or the end.
type port[T any] interface {
	// put hands t over with v, and waits with ctx if it has to; from is the stage whose handler calls, if any.
	put(ctx context.Context, t *task, v T, h how, from *core) error

	// pass is put for a worker of from, if there is room at once. Then it returns true with the guard of from held, so that
	// the task leaves the one stage and enters the other in one step; and the workers that it owes.
	pass(t *task, v T, now int64, from *core) (due starting, ok bool)

	// full returns the error with which a task is sure to be rejected now, and counts the rejection.
	full(h how) error
}

// An end is where a way ends.
type end[T any] struct{}

func (end[T]) put(_ context.Context, t *task, v T, _ how, _ *core) error {
	switch c := t.answer.(type) {
	case *call[T]:
		c.out = v
	case *fed[T]:
		c.out = v
	}
	return nil
}

func (end[T]) pass(*task, T, int64, *core) (due starting, ok bool) { return due, false }
func (end[T]) full(how) error                                      { return nil }

// A gate is a stage, and where its results go.
type gate[In, Out any] struct {
	s  *Stage[In, Out]
	to port[Out]
}

func (g *gate[In, Out]) full(h how) error {
	s := g.s
	if h == always || h == asFull && s.o.Full == Wait || !s.crowded.Load() {
		return nil
	}
	s.pool.guard.Lock()
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		s.pool.guard.Unlock()
		return err
	case s.room():
		s.pool.guard.Unlock()
		return nil
	}
	return s.reject()
}

// reject is called with the guard held, and unlocks it.
func (s *Stage[In, Out]) reject() error {
	var gone []item[In, Out]
	if s.crowded.Store(true); s.sweepDue() {
		gone = s.sweep(s.pool.now())
	}
	err := s.refuse(s.errs.full)
	s.pool.release()
	for _, e := range gone {
		e.t.leave(suspend.Err(e.t))
	}
	return err
}

func (g *gate[In, Out]) put(ctx context.Context, t *task, in In, h how, from *core) error {
	s := g.s
	p := s.pool
	now := p.now()
	e := item[In, Out]{t: t, to: g.to, in: in}
	p.guard.Lock()
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		p.guard.Unlock()
		return err
	case s.room():
		s.accept(e, now)
		p.release()
		return nil
	case h == never, h == asFull && s.o.Full == Reject:
		return s.reject()
	}
	p.guard.Unlock()
	if from != nil {
		from.block()
		defer from.goOn()
	}
	_, err := suspend.Wait[struct{}](ctx, outsider[In, Out]{s, e}, false)
	p.kick() // it may have got in without anybody's help
	return err
}

func (g *gate[In, Out]) pass(t *task, in In, now int64, from *core) (due starting, ok bool) {
	s := g.s
	lockBoth(from.pool, s.pool)
	if s.closed || !s.room() {
		if from.pool != s.pool {
			s.pool.guard.Unlock()
		}
		from.pool.guard.Unlock()
		return due, false
	}
	s.accept(item[In, Out]{t: t, to: g.to, in: in}, now)
	if from.pool != s.pool {
		due = starting{s.pool, s.pool.due()}
		s.pool.guard.Unlock()
	}
	return due, true
}

// lockBoth locks the guards of two pools, in an order that is the same for all.
func lockBoth(p, q *Pool) {
	switch {
	case p == q:
		p.guard.Lock()
	case p.id < q.id:
		p.guard.Lock()
		q.guard.Lock()
	default:
		q.guard.Lock()
		p.guard.Lock()
	}
}

// A call is a task with a place for its answer.
type call[Out any] struct {
	task
	out    Out
	answer promise.Promise[Out]
}

func (c *call[Out]) settled(err error) {
	if err != nil {
		_ = c.answer.Fail(err)
		return
	}
	_ = c.answer.Fill(c.out)
}

// begin makes t a child of the task of ctx, if there is one, and returns the stage whose handler calls.
func (t *task) begin(ctx context.Context) (from *core, err error) {
	t.open.Store(1)
	t.values = ctx
	if p := taskOf(ctx); p != nil {
		if !p.adopt() {
			return nil, ErrEnded
		}
		t.parent = p
		from = p.here()
	}
	return from, nil
}

// newCall returns a call that is about to be handed in.
func newCall[In, Out any](ctx context.Context, p port[In], h how) (c *call[Out], from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.full(h); err != nil {
		return nil, nil, err
	}
	c = new(call[Out])
	c.task.answer, c.until = c, likeCtx
	from, err = c.begin(ctx)
	return c, from, err
}

func do[In, Out any](ctx context.Context, p port[In], in In) (out Out, err error) {
	c, from, err := newCall[In, Out](ctx, p, asFull)
	if err != nil {
		return out, err
	}
	if err := handIn(ctx, &c.task, p, in, asFull, from); err != nil {
		return out, err
	}
	return c.await(ctx, from)
}

// handIn puts a task in the first stage.
func handIn[In any](ctx context.Context, t *task, p port[In], in In, h how, from *core) error {
	err := p.put(ctx, t, in, h, from)
	if err != nil && t.parent != nil {
		t.parent.leave(nil) // it was not accepted, so its parent has no child
	}
	return err
}

// answered is the answer of a call that ended on its caller. A done ctx fails it all the same, as it fails await.
func (c *call[Out]) answered(ctx context.Context, err error) (out Out, _ error) {
	if over := suspend.Err(ctx); over != nil {
		return out, over
	}
	if err != nil {
		return out, err
	}
	return c.out, nil
}

// await waits for the answer, without the permit of the handler that calls.
func (c *call[Out]) await(ctx context.Context, from *core) (Out, error) {
	if from != nil && c.open.Load() > 0 {
		from.block()
		defer from.goOn()
	}
	out, err := c.answer.Await(ctx)
	if err != nil && c.open.Load() > 0 {
		c.gone.Store(true) // cancelled: it need not begin
	}
	return out, err
}

func submit[In any](ctx context.Context, p port[In], in In, h how) error {
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	if err := p.full(h); err != nil {
		return err
	}
	t := new(task)
	from, err := t.begin(ctx)
	if err != nil {
		return err
	}
	if t.parent != nil {
		t.until = likeOwner
	}
	if _, own := ctx.(*task); !own && ctx.Done() != nil {
		t.values = context.WithoutCancel(ctx)
	}
	return handIn(ctx, t, p, in, h, from)
}

// Do implements Flow. Where the caller is on the scheduler of the stage, and no task waits and there is a free slot, the
// handler runs on the caller. A Do in a handler of the same stage, with its context, runs in the handler's own slot, so it
// cannot wait for itself.
func (s *Stage[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	c, from, err := newCall[In, Out](ctx, &s.entry, asFull)
	if err != nil {
		return out, err
	}
	if now := s.pool.now(); s.mayInline(from, now) {
		if err, done := s.inline(c, in, now, from != nil); done {
			return c.answered(ctx, err)
		}
	} else if err := handIn(ctx, &c.task, &s.entry, in, asFull, from); err != nil {
		return out, err
	}
	return c.await(ctx, from)
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

func future[In, Out any](ctx context.Context, p port[In], in In) (promise.Future[Out], error) {
	c, from, err := newCall[In, Out](ctx, p, asFull)
	if err != nil {
		return nil, err
	}
	if err := handIn(ctx, &c.task, p, in, asFull, from); err != nil {
		return nil, err
	}
	return &c.answer, nil
}

// A flow is a Flow that is made of others, wired once.
type flow[In, Out any] struct {
	in     port[In]
	wire   func(to port[Out]) port[In]
	stages func(to []Observed) []Observed
}

// Pipe returns the flow that hands the answers of a to b. A worker of a that finds b full waits, without its permit of the
// pool but in its slot of the stage. Stages must not be piped in a circle: two full ones would wait for each other.
func Pipe[A, B, C any](a Flow[A, B], b Flow[B, C]) Flow[A, C] {
	wire := func(to port[C]) port[A] { return a.bind(b.bind(to)) }
	return &flow[A, C]{wire(end[C]{}), wire, func(to []Observed) []Observed { return b.describe(a.describe(to)) }}
}

// Pipe3 is a Pipe of three.
func Pipe3[A, B, C, D any](a Flow[A, B], b Flow[B, C], c Flow[C, D]) Flow[A, D] {
	return Pipe(Pipe(a, b), c)
}

// Pipe4 is a Pipe of four.
func Pipe4[A, B, C, D, E any](a Flow[A, B], b Flow[B, C], c Flow[C, D], d Flow[D, E]) Flow[A, E] {
	return Pipe(Pipe3(a, b, c), d)
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

func (f *flow[In, Out]) bind(to port[Out]) port[In]        { return f.wire(to) }
func (f *flow[In, Out]) front() port[In]                   { return f.in }
func (f *flow[In, Out]) describe(to []Observed) []Observed { return f.stages(to) }

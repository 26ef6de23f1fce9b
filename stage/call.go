package stage

import (
	"context"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A reply is the answer that a Do or Begin waits for.
type reply[Out any] struct {
	out     Out
	promise promise.Promise[Out]
}

func (r *reply[Out]) settled(err error) {
	if err != nil {
		_ = r.promise.Fail(err)
		return
	}
	_ = r.promise.Fill(r.out)
}

// A call is a task with a place for its answer.
type call[Out any] struct {
	task
	reply reply[Out]
}

// give stores the result of t, whose way has ended.
func give[Out any](t *task, out Out) {
	switch a := t.answer.(type) {
	case *reply[Out]:
		a.out = out
	case *fed[Out]:
		a.out = out
	}
}

// enter looks whether a task may be handed in at all. It returns the task of ctx, which has adopted one more, and the stage
// whose handler calls.
func enter[In any](ctx context.Context, p port[In], h how) (parent *task, from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.full(h); err != nil {
		return nil, nil, err
	}
	return adopted(ctx)
}

// enterDo is enter for a Do. That of a handler may need no room, which put finds out.
func enterDo[In any](ctx context.Context, p port[In]) (parent *task, from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if parent, from, err = adopted(ctx); err != nil || from != nil {
		return parent, from, err
	}
	if err = p.full(asFull); err != nil && parent != nil {
		parent.leave(nil)
	}
	return parent, nil, err
}

func adopted(ctx context.Context) (parent *task, from *core, err error) {
	if parent = taskOf(ctx); parent == nil {
		return nil, nil, nil
	}
	if !parent.adopt() {
		return nil, nil, ErrEnded
	}
	return parent, parent.here(), nil
}

// handIn puts a task in the first stage.
func handIn[In any](ctx context.Context, t *task, p port[In], in In, h how, from *core) (err error) {
	accepted := false
	defer func() { // also if ctx or a key panics
		if !accepted && t.parent != nil {
			t.parent.leave(nil) // it was not accepted, so its parent has no child
		}
	}()
	err = p.put(ctx, t, in, h, from)
	accepted = err == nil
	return err
}

// begin hands in a task with an answer.
func begin[In, Out any](ctx context.Context, p port[In], in In, parent *task, from, asks *core) (*call[Out], error) {
	c := new(call[Out])
	c.values, c.parent, c.until = ctx, parent, likeCtx
	c.answer = &c.reply
	if asks != nil {
		c.asked = &asking{from: asks, task: &c.task}
	}
	return c, handIn(ctx, &c.task, p, in, asFull, from)
}

func do[In, Out any](ctx context.Context, p port[In], in In) (out Out, err error) {
	parent, from, err := enterDo(ctx, p)
	if err != nil {
		return out, err
	}
	return ask[In, Out](ctx, p, in, parent, from)
}

// ask hands in, and waits.
func ask[In, Out any](ctx context.Context, p port[In], in In, parent *task, from *core) (out Out, err error) {
	c, err := begin[In, Out](ctx, p, in, parent, from, from)
	if err != nil {
		return out, err
	}
	return c.reply.await(ctx, &c.task, from)
}

func future[In, Out any](ctx context.Context, p port[In], in In) (promise.Future[Out], error) {
	parent, from, err := enter(ctx, p, asFull)
	if err != nil {
		return nil, err
	}
	c, err := begin[In, Out](ctx, p, in, parent, from, nil)
	if err != nil {
		return nil, err
	}
	return &c.reply.promise, nil
}

// await waits for the answer of t, without the permit of the handler that calls.
func (r *reply[Out]) await(ctx context.Context, t *task, from *core) (Out, error) {
	if from != nil && t.open.Load() >= 0 {
		from.block(t.asked)
		defer from.goOn(t.asked)
	}
	out, err := r.promise.Await(ctx)
	if err != nil && t.open.Load() >= 0 {
		t.gone.Store(true) // cancelled: it need not begin
	}
	return out, err
}

func submit[In any](ctx context.Context, p port[In], in In, h how) error {
	_, own := ctx.(*task)
	ends := !own && ctx.Done() != nil
	parent, from, err := enter(ctx, p, h)
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

package stage

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Do implements Flow. Where the caller is on the scheduler of the stage, and no task waits and there is a free slot, the
// handler runs on the caller. Such a Do returns when the handler does, also if ctx is done before.
//
// A Do in a handler, with its context and on its goroutine, cannot wait for itself. If a handler of this stage waits for it,
// directly or by a chain of Dos, it needs no room, and runs in the slot of that handler. Where several chains cross, so that each waits
// for a slot of another, one of the Dos fails with ErrCycle. A wait for
// the children of Begin and Submit is not looked at.
func (s *Stage[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	parent, from, err := enterDo(ctx, &s.entry)
	if err != nil {
		return out, err
	}
	if from == nil {
		if now, ticket := s.mayInline(); ticket != 0 {
			if s.o.Limit != nil {
				defer s.adjustInline()
			}
			return s.inline(ctx, in, parent, now, ticket)
		}
	}
	return ask[In, Out](ctx, &s.entry, in, parent, from)
}

// mayInline looks whether a Do may run the handler on its caller, and takes the slot and the permit. Then it returns the
// ticket of the task.
func (s *Stage[In, Out]) mayInline() (now int64, ticket uint64) {
	p := s.pool
	if s.batch != nil || s.o.Rate > 0 || !p.onCaller() {
		return 0, 0
	}
	now = p.now()
	p.guard.Lock()
	if !s.closed && s.waiting == 0 && s.slots < s.width && p.running < p.width && s.outside.Len() == 0 && s.room() {
		s.arrived++
		s.accepted++
		s.progress++
		s.slots++
		p.running++
		p.tickets++
		ticket = p.tickets
		s.begun(now, now)
	}
	p.guard.Unlock()
	return now, ticket
}

// onCaller reports whether the caller is on the scheduler of p.
func (p *Pool) onCaller() bool { return p.inline && suspend.Within(p.on) }

// inline runs the handler on the caller of Do. Only if the task has children then, or is tried again, it waits for a reply.
func (s *Stage[In, Out]) inline(ctx context.Context, in In, parent *task, now int64, ticket uint64) (out Out, err error) {
	t := &task{values: ctx, parent: parent, until: likeCtx}
	e := item[In, Out]{t: t, way: &s.entry, in: in, ticket: ticket}
	returned := false
	defer s.unwound(&returned, &e)
	s.rank(t, in) // for a retry
	v := verdict{}
	out, _ = s.perform(&e, false, gid.Get(), &now, &v, nil)
	s.decide(&e, &v)
	returned = true

	var r *reply[Out]
	if v.fate == again {
		r = new(reply[Out])
		t.answer = r // from finish on, others may end the task
	}
	var o owed
	s.vacate(&e, &v, now, &o)
	if r == nil {
		if o.leave != nil && t.leaveAlone(&o.err) {
			return answered(ctx, out, o.err)
		}
		r = &reply[Out]{out: out}
		t.answer = r
	}
	o.pay()
	return r.await(ctx, t, nil)
}

// unwound is called while a panic or a Goexit leaves the handler of a Do, or OnFail.
func (s *Stage[In, Out]) unwound(returned *bool, e *item[In, Out]) {
	if *returned {
		return
	}
	if s.o.OnPanic == nil {
		if v := recover(); v != nil {
			endProcess(v, debug.Stack()) // a recover of the caller must not hide it
		}
	}
	defer s.abandon(e)
	s.report(e.t, e.in, ErrAbandoned)
}

// answered is the answer of a task that ended on its caller. A done ctx fails it all the same, as it fails await.
func answered[Out any](ctx context.Context, out Out, err error) (Out, error) {
	if over := suspend.Err(ctx); over != nil {
		err = over
	}
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}

// endProcess ends the process as a panic of a worker does.
func endProcess(v any, stack []byte) {
	go panic(fmt.Sprintf("%v\n\nin a handler that ran on the caller of Do:\n%s", v, stack))
	select {}
}

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
		if t.asked != nil {
			t.asked.look()
		}
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

// adjustInline is adjust for the caller of a Do.
func (c *core) adjustInline() {
	p := c.pool
	p.guard.Lock()
	defer p.release()
	if s, due := c.sample(p.now()); due {
		p.release()
		c.limit(s)
	}
}

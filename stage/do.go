package stage

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A task through a stage
//
// This is the way of a Do through one stage. All steps that count are under the guard of the pool, so that Stats always add up.
//
//  1. enterDo. A ctx that is done, or that belongs to a task that has ended (ErrEnded), fails the Do, and nothing is counted.
//     With the context of a handler the new task is a child: from now on the parent must wait for it.
//  2. full. A stage that has rejected before may reject here (ErrFull, ErrClosed), before the task is allocated. Passing
//     reserves nothing: put decides again. The Do of a handler skips this step, because it may need no room.
//  3. mayInline. On the scheduler of the stage, with no task waiting, a free slot and a free permit, the handler runs on the
//     caller. A panic of it ends the process if OnPanic is nil: a recover of the caller must not hide it. Steps 8 to 11
//     follow in the caller.
//  4. put. A closed stage returns ErrClosed. With room, accept follows in the same critical section. A full stage that
//     rejects returns ErrFull, unless t displaces a task of a lower priority, which then fails with ErrDisplaced. A full
//     stage that waits lets the caller wait as an outsider; its cancellation, or an ErrCycle, counts nowhere. After any error
//     of put no handler has run, and handIn takes the child off its parent.
//  5. accept. The task is in the queue, and counts as Arrived and Accepted. The release after it takes a permit for a worker,
//     if one is free, and wakes or starts the worker, so that no task waits beside a free slot and a free permit. If the
//     scheduler refuses, the worker is a plain goroutine.
//  6. await. The Do waits. If ctx is done first, it returns the cancellation error at once and marks the task as gone, but
//     with a Lazily context it waits for its task. In the queue the task keeps its place until a worker reaches it, or a rejection
//     sweeps the queue; it counts as Cancelled then. A handler that runs sees the context end, and decides what the task counts as.
//     If the Do is part of a cycle of waits, one Do of the cycle fails with ErrCycle.
//  7. serve. A worker takes the task off the queue, and a slot, and unlocks. A task that has waited too long for Delay
//     fails with ErrLate. A task that is gone, or whose ctx is done, is not begun.
//  8. call. The handler runs without a lock, with the task as its context. A panic is an error of the task if OnPanic is set.
//     Otherwise, and after a runtime.Goexit, the task fails with ErrAbandoned, its slot and its permit are free again, and
//     the worker ends; on goroutines the panic then ends the process.
//  9. handOn. After an error, Retry may delay the task: it gives up its slot, but keeps its room, and tryAgain puts it
//     in front of the queue, so step 7 follows. Otherwise the task is given up, and OnFail runs first, still in the
//     slot. After a success of a stage in a pipe, pass moves the task to the next stage in one step, or put waits
//     there, in the slot but without the permit. If put fails, the task is given up in this stage, although its handler
//     has succeeded.
//  10. finish. The slot is free, the fate is counted, admit lets an outsider in, and a Close that waits for the last
//     task is resumed.
//  11. pay. After the unlock, leave ends the way of the task. The answer follows when all children are done, too, so a Do whose
//     handler has returned may wait on. Its error is the first error in the tree.
//
// A task that is given up in the queue, by a Close, a displacement or a cycle, skips steps 7 to 10. end calls OnFail and
// answers first, and frees the room last; until then the task counts as Busy. OnFail is called once for such a task, as for
// each task given up, but not for a task that its caller has cancelled: in the queue, or so that its handler returned
// the error of its context. A handler that returns another error after its Do has returned fails, and OnFail is called.
//
// Not proved, and partly not so:
//   - A handler may run forever. A Close that is cut off cancels contexts and returns, but does not stop a handler.
//   - A task of a lower priority waits as long as tasks of higher priorities come, and with LIFO the oldest task waits as
//     long as younger tasks come. Delay sheds a task only when a worker reaches it.
//   - The search for cycles covers Dos and waits for room. A handler that waits for the child of a Begin or Submit, or in an
//     Each, may wait without end.
//   - That no wake-up is lost, and that the counts add up, is tested and model-checked on small programs, but not proved.

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

// A reply is the answer that a Do or Begin waits for.
type reply[Out any] struct {
	out     Out
	promise promise.Promise[Out]
}

func (r *reply[Out]) settled(err error) {
	if err != nil {
		r.promise.Fail(err)
		return
	}
	r.promise.Fill(r.out)
}

// A call is a task with a place for its answer.
type call[Out any] struct {
	task
	reply reply[Out]
}

// enter checks whether a task may be handed in at all. It returns the task of ctx, which has adopted one more child, and the
// stage whose handler calls.
func enter[In any](ctx context.Context, p port[In], h how) (parent *task, from *core, err error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.full(h); err != nil {
		return nil, nil, err
	}
	return adopted(ctx)
}

// enterDo is enter for a Do. It does not call full for a handler's Do, since that may need no room: put decides.
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
	defer func() { // it runs even if ctx or a key panics
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
		t.gone.Store(true) // the Do is cancelled, so its task need not begin
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

func (g *gate[In, Out]) full(h how) error {
	s := g.s
	if h == always || h == asFull && s.o.Full == FullWait || !s.crowded.Load() || s.priority != nil {
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
		e.t.ends(suspend.Err(e.t))
	}
	return err
}

func (g *gate[In, Out]) put(ctx context.Context, t *task, in In, h how, from *core) error {
	s := g.s
	p := s.pool
	now := p.now()
	s.rank(t, in)
	p.guard.Lock()
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		p.guard.Unlock()
		return err
	case s.admits(t):
		if h == always { // its Do in the stage before waits already
			p.suspect(t.asked)
		}
		s.accept(g, t, in, now)
		p.release()
		return nil
	case (h == never || h == asFull && s.o.Full == FullReject) && !s.lends(t):
		if e, ok := s.displace(t); ok {
			s.accept(g, t, in, now)
			p.release()
			s.tell(e, verdict{fate: late, err: s.errs.displaced})
			return nil
		}
		return s.reject()
	}
	p.guard.Unlock()
	var a *asking
	if from != nil {
		a = &asking{from: from, task: t, ctx: ctx}
		ctx, a.stop = cancel.New(ctx)
		defer a.stop(nil)
		a.moved(&s.core)
		from.block(a)
		defer from.goOn(a)
	}
	_, err := suspend.Wait[struct{}](ctx, outsider[In, Out]{g, t, in, a}, false)
	p.kick() // it may have got in without anybody's help
	return err
}

func (g *gate[In, Out]) pass(t *task, in In, now int64, from *core) (due dues, ok bool) {
	s := g.s
	p, q := from.pool, s.pool
	if p != q && (p.clock != nil || q.clock != nil) { // their clocks may differ
		now = q.now()
	}
	s.rank(t, in)
	guards := suspend.LockAll([]*suspend.Guard{&p.guard, &q.guard})
	if s.closed || !s.admits(t) {
		suspend.UnlockAll(guards)
		return due, false
	}
	s.accept(g, t, in, now)
	q.suspect(t.asked)
	if p != q {
		due = q.unlock()
	}
	return due, true
}

// letIn is called under the guard.
func (o outsider[In, Out]) letIn(now int64) {
	o.g.s.accept(o.g, o.t, o.in, now)
	o.g.s.pool.suspect(o.t.asked)
	if o.a != nil {
		o.a.in.Store(nil)
	}
}

func (o outsider[In, Out]) Guard() *suspend.Guard { return &o.g.s.pool.guard }

func (o outsider[In, Out]) Try() (none struct{}, ok bool, err error) {
	switch s := o.g.s; {
	case s.closed:
		return none, true, s.refuse(s.errs.closed)
	case s.admits(o.t):
		o.letIn(s.pool.now())
		return none, true, nil
	}
	return none, false, nil
}

func (o outsider[In, Out]) Enqueue(r suspend.Resumer[struct{}]) {
	if s := o.g.s; s.lends(o.t) {
		s.outside.PushFront(r, o)
	} else {
		s.outside.Push(r, o)
	}
}

func (o outsider[In, Out]) Remove(r suspend.Resumer[struct{}]) { o.g.s.outside.Remove(r) }

// admit lets callers in from outside, the longest waiting first, as far as there is room.
func (s *Stage[In, Out]) admit(now int64) {
	if s.outside.Len() > 0 { // inlined
		s.admitSome(now)
	}
}

func (s *Stage[In, Out]) admitSome(now int64) {
	for s.outside.Len() > 0 && s.admits((*s.outside.Head()).t) {
		if o, ok := s.outside.ResumeHead(struct{}{}, nil); ok {
			o.letIn(now)
		}
	}
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

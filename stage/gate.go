package stage

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

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
		if h == always { // from the stage before: its Do waits already
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
	if p != q && (p.clock != nil || q.clock != nil) { // it may be another one
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

// admit lets in those that wait outside, the longest waiting first, as far as there is room.
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

// sweepDue reports whether the queue is to be searched for tasks whose Do has gone. N rejections pay for a queue of N tasks,
// so a rejection takes constant time on average.
func (s *Stage[In, Out]) sweepDue() bool {
	if s.rejects++; s.rejects < s.waiting {
		return false
	}
	s.rejects = 0
	return true
}

// drop implements server.
func (s *Stage[In, Out]) drop(t *task, err error) (tell func()) {
	e := s.take(func(e *item[In, Out]) bool { return e.t == t })[0]
	s.gaveUp(1)
	return func() { s.tell(e, verdict{fate: failed, err: err, service: notServed}) }
}

// take takes tasks that wait off their lines.
func (s *Stage[In, Out]) take(out func(*item[In, Out]) bool) (gone []item[In, Out]) {
	gone = s.hurry.sweep(out)
	for level := len(s.urgent); level >= 0; level-- {
		gone = append(gone, s.lineOf(level).sweep(out)...)
	}
	for i := range gone {
		gone[i].left()
	}
	s.queued(-len(gone))
	return gone
}

// sweep removes the tasks whose Do has gone, and returns them for the caller to end. Those that were lent a slot begin soon, and stay.
func (s *Stage[In, Out]) sweep(now int64) []item[In, Out] {
	gone := s.take(func(e *item[In, Out]) bool { return e.ticket != lent && e.t.gone.Load() })
	s.cancelled += uint64(len(gone))
	if len(gone) > 0 {
		s.admit(now)
		s.settleIf()
	}
	return gone
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

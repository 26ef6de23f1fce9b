package stage

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// how is the choice between waiting and rejecting.
type how uint8

const (
	asFull how = iota // Options.Full decides
	never             // reject
	always            // wait
)

// A port is where values go: a stage with what follows it. A nil port is the end of the way.
type port[T any] interface {
	// put hands t over with v, and waits with ctx if it has to; from is the stage whose handler calls, if any.
	put(ctx context.Context, t *task, v T, h how, from *core) error

	// pass is put for a worker of from, if there is room at once. Then it returns true with the guard of from held, so that
	// the task leaves the one stage and enters the other in one step; and the workers that it owes.
	pass(t *task, v T, now int64, from *core) (due starting, ok bool)

	// full returns the error with which a task is sure to be rejected now, and counts the rejection.
	full(h how) error
}

// A gate is a stage, and where its results go.
type gate[In, Out any] struct {
	s  *Stage[In, Out]
	to port[Out]
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
		gone = s.sweep(s.pool.now(), func(e *item[In, Out]) bool { return e.t.gone.Load() })
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
	s.rank(t, in)
	p.guard.Lock()
	switch {
	case s.closed:
		err := s.refuse(s.errs.closed)
		p.guard.Unlock()
		return err
	case s.admits(t):
		s.accept(g, t, in, now)
		p.release()
		return nil
	case (h == never || h == asFull && s.o.Full == FullReject) && !s.lends(t):
		if e, ok := s.displace(t); ok {
			s.accept(g, t, in, now)
			p.release()
			s.tell(e)
			return nil
		}
		return s.reject()
	}
	p.guard.Unlock()
	var a *asking
	if from != nil {
		if t.parent != nil { // a handler may wait for it
			a = &asking{from: from, task: t}
			ctx, a.stop = cancel.New(ctx)
			defer a.stop(nil)
			a.moved(&s.core)
		}
		from.block(a)
		defer from.goOn(a)
	}
	_, err := suspend.Wait[struct{}](ctx, outsider[In, Out]{g, t, in, a}, false)
	p.kick() // it may have got in without anybody's help
	return err
}

// admits reports whether there is room for t, or t needs none.
func (c *core) admits(t *task) bool { return c.room() || c.needsNone(t) }

// needsNone reports whether t needs no room, because a handler of the stage waits for it. A handler waits for one task at a time:
// the Dos of further tasks were cancelled, and t waits until they have left.
func (c *core) needsNone(t *task) bool { return c.lent < c.slots && c.lends(t) }

func (g *gate[In, Out]) pass(t *task, in In, now int64, from *core) (due starting, ok bool) {
	s := g.s
	p, q := from.pool, s.pool
	if p != q && (p.clock != nil || q.clock != nil) { // it may be another one
		now = q.now()
	}
	s.rank(t, in)
	lockBoth(p, q)
	if s.closed || !s.admits(t) {
		if p != q {
			q.guard.Unlock()
		}
		p.guard.Unlock()
		return due, false
	}
	s.accept(g, t, in, now)
	if p != q {
		due = starting{q, q.due()}
		q.guard.Unlock()
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

// outsider is the wait of one that has found the stage full. The stage has its place in the list of those that wait.
type outsider[In, Out any] struct {
	g  *gate[In, Out]
	t  *task
	in In
	a  *asking // its handler, if it is one
}

// letIn is called under the guard.
func (o outsider[In, Out]) letIn(now int64) {
	o.g.s.accept(o.g, o.t, o.in, now)
	if o.a != nil {
		o.a.queued = false
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

// drop removes t, for the caller to end.
func (s *Stage[In, Out]) drop(t *task) {
	s.sweep(s.pool.now(), func(e *item[In, Out]) bool { return e.t == t })
}

// take takes tasks that wait off their lines.
func (s *Stage[In, Out]) take(out func(*item[In, Out]) bool) (gone []item[In, Out]) {
	for level := len(s.urgent); level >= 0; level-- {
		gone = append(gone, s.lineOf(level).sweep(out)...)
	}
	for i := range gone {
		gone[i].left()
	}
	return gone
}

// sweep removes tasks, and returns them for the caller to end.
func (s *Stage[In, Out]) sweep(now int64, out func(*item[In, Out]) bool) []item[In, Out] {
	gone := s.take(out)
	s.queued(-len(gone))
	s.cancelled += uint64(len(gone))
	if len(gone) > 0 {
		s.admit(now)
		s.settleIf()
	}
	return gone
}

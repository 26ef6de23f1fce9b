package stage

import (
	"github.com/braidgo/braid/suspend"
)

// letIn accepts the task of o. The caller must hold the guard.
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

// admit accepts tasks from the front of s.outside while there is room. The caller must hold the guard.
func (s *Stage[In, Out]) admit(now int64) {
	if s.outside.Len() > 0 { // admit is small enough to be inlined
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

package stage

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// Do implements Flow. Where the caller is on the scheduler of the stage, and no task waits and there is a free slot, the
// handler runs on the caller. A Do in a handler of the same stage, with its context, runs in the handler's own slot, so it
// cannot wait for itself.
func (s *Stage[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	if err := suspend.Err(ctx); err != nil {
		return out, err
	}
	if err := s.entry.full(asFull); err != nil {
		return out, err
	}
	parent, from, err := adopted(ctx)
	if err != nil {
		return out, err
	}
	if timed, ok := s.mayInline(from); ok {
		return s.inline(ctx, in, parent, from, timed)
	}
	c, err := begin[In, Out](ctx, &s.entry, in, parent, from)
	if err != nil {
		return out, err
	}
	return c.reply.await(ctx, &c.task, from)
}

// mayInline reports whether a Do may run the handler on its caller, and takes the slot and the permit. A handler of the
// same stage lends its own.
func (s *Stage[In, Out]) mayInline(from *core) (timed, ok bool) {
	lent := from == &s.core
	if s.f == nil || !lent && (from != nil || !s.pool.onCaller()) {
		return false, false
	}
	p := s.pool
	now := int64(0)
	if s.precise {
		now = p.now()
	}
	p.guard.Lock()
	if s.closed || !lent && (s.waiting > 0 || s.slots >= s.width || p.running >= p.width || s.outside.Len() > 0) {
		p.guard.Unlock()
		return false, false
	}
	s.arrived++
	s.accepted++
	s.progress++
	if !lent {
		s.slots++
		p.running++
	}
	s.begun(now, now)
	timed = s.sample()
	p.guard.Unlock()
	return timed, true
}

// onCaller reports whether the caller is on the scheduler of p.
func (p *Pool) onCaller() bool { return p.inline && suspend.Within(p.on) }

// inline runs the handler on the caller of Do. Only if the task has children then, or is tried again, it waits for a reply.
func (s *Stage[In, Out]) inline(ctx context.Context, in In, parent *task, from *core, timed bool) (out Out, err error) {
	t := &task{values: ctx, parent: parent, at: &s.core, until: likeCtx}
	t.gid.Store(gid.Get())
	e := item[In, Out]{t: t, way: &s.entry, in: in}
	returned := false
	defer s.unwound(&returned, &e, from)
	start, now := int64(0), int64(0)
	if timed {
		start = s.pool.now()
	}
	out, err = s.call(t, in)
	if timed {
		now = s.pool.now()
	}
	v := verdict{}
	if err != nil {
		s.failure(t, in, err, &v)
	}
	returned = true

	var r *reply[Out]
	if v.fate == again {
		r = new(reply[Out])
		t.answer = r // from finish on, others may end the task
	}
	service := unmeasured
	if timed {
		service = now - start
	}
	var o owed
	s.inlined(&e, &v, from, service, now, &o)
	if r == nil {
		if o.leave != nil && t.leaveAlone(&o.err) {
			return answered(ctx, out, o.err)
		}
		r = &reply[Out]{out: out}
		t.answer = r
	}
	o.pay()
	return r.await(ctx, t, from)
}

// inlined gives the slot and the permit back, and counts the fate.
func (s *Stage[In, Out]) inlined(e *item[In, Out], v *verdict, from *core, service, now int64, o *owed) {
	p := s.pool
	p.guard.Lock()
	if from != &s.core {
		s.slots--
		p.running--
	}
	if !s.precise && v.fate != cancelled {
		s.measured(service)
		service = unmeasured // by finish
	}
	s.finish(e, v, service, now, o)
	p.release()
}

// unwound is called while a panic or a Goexit leaves the handler of a Do.
func (s *Stage[In, Out]) unwound(returned *bool, e *item[In, Out], from *core) {
	if *returned {
		return
	}
	if s.o.OnPanic == nil {
		if v := recover(); v != nil {
			endProcess(v, debug.Stack()) // a recover of the caller must not hide it
		}
	}
	s.dead(e.t, e.in, ErrAbandoned)
	var o owed
	s.inlined(e, &verdict{fate: failed, err: ErrAbandoned}, from, unmeasured, s.pool.now(), &o)
	o.pay()
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

package stage

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// Do implements Flow. Where the caller is on the scheduler of the stage, and no task waits and there is a free slot, the
// handler runs on the caller. Such a Do returns when the handler does, also if ctx is done before. A Do in a handler of the
// same stage, with its context, runs in the handler's own slot, also when it is tried again, so it cannot wait for itself.
func (s *Stage[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	if err := suspend.Err(ctx); err != nil {
		return out, err
	}
	parent, from, err := adopted(ctx)
	if err != nil {
		return out, err
	}
	if from != &s.core { // or else it needs no room
		if err := s.entry.full(asFull); err != nil {
			if parent != nil {
				parent.leave(nil)
			}
			return out, err
		}
	}
	if now, ok := s.mayInline(from); ok {
		return s.inline(ctx, in, parent, from, now)
	}
	c, err := begin[In, Out](ctx, &s.entry, in, parent, from)
	if err != nil {
		return out, err
	}
	return c.reply.await(ctx, &c.task, from)
}

// mayInline reports whether a Do may run the handler on its caller, and takes the slot and the permit. A handler of the
// same stage lends its own.
func (s *Stage[In, Out]) mayInline(from *core) (now int64, ok bool) {
	lent := from == &s.core
	if !lent && (s.batch != nil || from != nil || !s.pool.onCaller()) {
		return 0, false
	}
	p := s.pool
	now = p.now()
	p.guard.Lock()
	if s.closed || !lent && (s.waiting > 0 || s.slots >= s.width || p.running >= p.width || s.outside.Len() > 0 || !s.room()) {
		p.guard.Unlock()
		return 0, false
	}
	s.arrived++
	s.accepted++
	s.progress++
	if !lent {
		s.slots++
		p.running++
	}
	s.begun(now, now)
	p.guard.Unlock()
	return now, true
}

// onCaller reports whether the caller is on the scheduler of p.
func (p *Pool) onCaller() bool { return p.inline && suspend.Within(p.on) }

// inline runs the handler on the caller of Do. Only if the task has children then, or is tried again, it waits for a reply.
func (s *Stage[In, Out]) inline(ctx context.Context, in In, parent *task, from *core, now int64) (out Out, err error) {
	t := &task{values: ctx, parent: parent, at: &s.core, until: likeCtx}
	t.gid.Store(gid.Get())
	e := item[In, Out]{t: t, way: &s.entry, in: in}
	returned := false
	defer s.unwound(&returned, &e, from)
	v := verdict{}
	for retry := true; retry; {
		start := now
		out, err = s.call(t, in)
		now = s.pool.now()
		v = verdict{service: now - start}
		if retry = err != nil; retry {
			retry = s.failedInline(&e, &v, from, err)
			now = s.pool.now()
		}
	}
	s.decide(&e, &v)
	returned = true

	var r *reply[Out]
	if v.fate == again {
		r = new(reply[Out])
		t.answer = r // from finish on, others may end the task
	}
	var o owed
	s.inlined(&e, &v, from, now, &o)
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

// failedInline finds the fate of a task whose handler has failed on the caller of Do. In a lent slot it is tried again here,
// after a while, as no other slot may come: then failedInline returns true.
func (s *Stage[In, Out]) failedInline(e *item[In, Out], v *verdict, from *core, err error) (retry bool) {
	s.failure(e.t, e.in, err, v)
	if from != &s.core {
		return false
	}
	s.decide(e, v)
	if v.fate == again {
		s.retried++
		s.service.add(v.service)
	}
	s.pool.guard.Unlock()
	if v.fate != again {
		return false
	}
	from.block()
	defer from.goOn()
	if err := suspend.Sleep(e.t, v.after); err != nil {
		v.fate, v.err = cancelled, err
		return false
	}
	return true
}

// inlined gives the slot and the permit back, and counts the fate. It is called with the guard held, and unlocks it.
func (s *Stage[In, Out]) inlined(e *item[In, Out], v *verdict, from *core, now int64, o *owed) {
	if from != &s.core {
		s.slots--
		s.pool.running--
	}
	s.finish(e, v, now, o)
	s.pool.release()
}

// unwound is called while a panic or a Goexit leaves the handler of a Do, or OnFail.
func (s *Stage[In, Out]) unwound(returned *bool, e *item[In, Out], from *core) {
	if *returned {
		return
	}
	if s.o.OnPanic == nil {
		if v := recover(); v != nil {
			endProcess(v, debug.Stack()) // a recover of the caller must not hide it
		}
	}
	defer func() {
		var o owed
		s.pool.guard.Lock()
		s.inlined(e, &verdict{fate: failed, err: ErrAbandoned}, from, s.pool.now(), &o)
		o.pay()
	}()
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

package stage

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// inline runs the handler on the caller of Do. inline waits for a reply only if the task is tried again, or has children that are
// not done when the handler returns.
func (s *Stage[In, Out]) inline(ctx context.Context, in In, parent *task, now int64, ticket uint64) (out Out, err error) {
	t := &task{values: ctx, parent: parent, until: likeCtx}
	e := item[In, Out]{t: t, way: &s.entry, in: in, ticket: ticket}
	returned := false
	defer s.unwound(&returned, &e)
	s.rank(t, in) // a later try needs the priority
	v := verdict{}
	out, _ = s.perform(&e, false, gid.Get(), &now, &v, nil)
	s.decide(&e, &v)
	returned = true

	var r *reply[Out]
	if v.fate == again {
		r = new(reply[Out])
		t.answer = r // once vacate has unlocked the guard, another goroutine may end the task
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

// unwound gives up the task while a panic or a runtime.Goexit unwinds the handler of a Do, or OnFail.
func (s *Stage[In, Out]) unwound(returned *bool, e *item[In, Out]) {
	if *returned {
		return
	}
	if s.o.OnPanic == nil {
		if v := recover(); v != nil {
			endProcess(v, debug.Stack()) // a recover in the caller must not hide the panic
		}
	}
	defer s.abandon(e)
	s.report(e.t, e.in, errAbandoned)
}

// answered returns the results of a Do whose task has ended on its caller. If ctx is done, the error is the cancellation error, as
// in await.
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

// endProcess ends the process as a panic in a worker does.
func endProcess(v any, stack []byte) {
	go panic(fmt.Sprintf("%v\n\nin a handler that ran on the caller of Do:\n%s", v, stack))
	select {}
}

package model

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/suspend"
)

// start starts a task that performs the calls of s in the way s.Way and records their result.
func (r *run) start(s Step) {
	id := len(r.ops)
	o := &running{ctx: newCtx(), calls: s.Calls, leaves: s.Done}
	m := &op{id: id, name: name(s.ID), asOp: s.Way != Method, reason: "cancelled"}
	for _, c := range s.Calls {
		k := r.sys.kind(c)
		m.calls = append(m.calls, call{c.Part, k.Name, c.Arg})
		m.try = k.Try
	}
	r.ops = append(r.ops, o)
	if s.Done {
		o.ctx.cancel(context.Canceled)
	}
	r.see(func(w *Worlds) error { w.start(m, s.Done); return nil })
	ctx := o.ctx.as(id, r.Rest == nil)
	k := r.sys.kind(s.Calls[0])
	var err error
	switch {
	case s.Way == Method:
		err = r.goes(s, func() { r.ended(id, protected(func() string { return k.Run(ctx, s.Calls[0].Arg) })) })
	case s.Way == Then && r.Then != nil && (len(s.Calls) == 1 || r.Rest == nil): // Choose is random, and a run with Rest must be repeatable
		op := r.opOf(s.Calls, true)
		err = r.goes(s, func() {
			suspend.Then(ctx, op, r.Then, func(v string, err error) { r.ended(id, result(v, err)) })
		})
	case len(s.Calls) == 1:
		err = r.goes(s, func() {
			v, err := suspend.Do(ctx, k.Op(s.Calls[0].Arg))
			r.ended(id, result(v, err))
		})
	default:
		err = r.goes(s, func() {
			cases := make([]suspend.Selectable, len(s.Calls))
			for i, c := range s.Calls {
				cases[i] = suspend.CaseOf(r.opOf([]Call{c}, false))
			}
			sel := suspend.Select
			if r.Rest != nil {
				sel = suspend.SelectOrdered // SelectOrdered always makes the same choice
			}
			won, err := sel(ctx, cases...)
			for i := range cases {
				if won == cases[i] {
					v, err := cases[i].(*suspend.Case[string]).Result()
					r.ended(id, fmt.Sprintf("case %d: %s", i, result(v, err)))
					return
				}
			}
			r.ended(id, result("nothing", err))
		})
	}
	if err != nil {
		r.fail(fmt.Errorf("the scheduler refuses a task: %w", err))
	}
}

// opOf returns an Op that chooses between the calls. If numbered is true, the result includes the number of the call that won.
func (r *run) opOf(calls []Call, numbered bool) suspend.Op[string] {
	var ops []suspend.Op[string]
	for i, c := range calls {
		op := r.sys.kind(c).Op(c.Arg)
		if numbered && len(calls) > 1 {
			op = suspend.Map(op, func(v string, err error) (string, error) {
				return fmt.Sprintf("case %d: %s", i, result(v, err)), nil
			})
		}
		ops = append(ops, op)
	}
	if len(ops) == 1 {
		return ops[0]
	}
	return suspend.Choose(ops...)
}

// protected returns the result of f, or the panic value as a string if f panics.
func protected(f func() string) (s string) {
	defer func() {
		if v := recover(); v != nil {
			s = fmt.Sprintf("panic: %v", v)
		}
	}()
	return f()
}

func result(v string, err error) string {
	switch {
	case err == nil:
		return v
	case errors.Is(err, context.DeadlineExceeded):
		return "late"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return err.Error()
}

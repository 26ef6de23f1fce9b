package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Place is where a program is run.
type Place struct {
	On   suspend.Spawner
	Then suspend.Executor // nil: no callbacks

	// Rest returns when certainly no task can go on. If it is nil, the run cannot know this. Then it waits natively for the results that the
	// models demand.
	Rest func()

	// Turn lets somebody else run, and reports whether it could.
	Turn func() bool

	// Patience is how long is waited for something that the models say has to happen.
	Patience time.Duration

	// Seen counts what operations have returned: part, kind and result.
	Seen map[string]int
}

// A run is one execution of a program.
type run struct {
	Place
	sys    *System
	objs   []Object
	worlds *Worlds
	events []func(w *Worlds) error // all that was seen, in order
	ops    []*running              // by id
	err    error

	toBegin atomic.Int32

	mu     sync.Mutex
	log    []end
	news   chan struct{} // has room for one
	looked int           // the length of log at the last look
}

type running struct {
	ctx    *ctx
	calls  []Call
	leaves bool // its context is done, or about to be
	seen   bool
}

type end struct {
	id     int
	result string
}

// Run runs the program, and returns an error if a result was wrong. Operations that could not be ended are left behind.
func (p *Program) Run(on Place) error {
	r := &run{Place: on, sys: p.New(), news: make(chan struct{}, 1)}
	if r.sys.Close != nil {
		defer r.sys.Close()
	}
	var objs []Object
	for _, part := range r.sys.Parts {
		objs = append(objs, part.Model)
	}
	r.objs, r.worlds = objs, newWorlds(objs)
	ids := map[int]int{} // operations that are left out are not counted
	for i, s := range p.Steps {
		id, started := ids[s.ID]
		switch s.Do {
		case Start:
			if len(r.worlds.all) > tooMany || r.waiting() >= most {
				r.settle()
			}
			if len(r.worlds.all) <= tooMany && r.waiting() < most {
				ids[s.ID] = len(r.ops)
				r.start(s)
			}
		case Cancel:
			if started {
				r.cancel(id, context.Canceled, s)
			}
		case Expire:
			if started {
				r.cancel(id, context.DeadlineExceeded, s)
			}
		case Turn:
			r.turn(s.Turns)
		case Settle:
			r.settle()
		}
		r.look()
		if r.failed(fmt.Sprintf("%s: ", p.line(p.Steps[i]))) {
			return r.err
		}
	}
	r.settle()
	for id := range r.ops {
		if r.cancel(id, context.Canceled, Step{}); len(r.worlds.all) > 20 {
			r.settle()
		}
	}
	r.settle()
	if r.failed("after all were cancelled: ") {
		return r.err
	}
	for i, c := range r.sys.Probe {
		s := Step{Do: Start, ID: maxOps + i, Calls: []Call{c}}
		r.start(s)
		r.settle()
		if r.failed(fmt.Sprintf("after all were cancelled, %s: ", p.line(s))) {
			return r.err
		}
	}
	return nil
}

// These are the limits of the set of worlds. Where the run cannot know that no task goes on, an operation that has not returned may not
// have begun.
const (
	most    = 5
	tooMany = 500
)

// failed reports whether the run has failed. Everybody is then let go, as far as that is possible.
func (r *run) failed(where string) bool {
	if r.err == nil {
		return false
	}
	r.err = fmt.Errorf("%s%w", where, r.err)
	for _, o := range r.ops {
		o.ctx.end(context.Canceled)
	}
	if r.Rest != nil {
		r.Rest()
	}
	return true
}

func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *run) waiting() (n int) {
	for _, o := range r.ops {
		if !o.seen {
			n++
		}
	}
	return n
}

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
		o.ctx.end(context.Canceled)
	}
	r.see(func(w *Worlds) error { w.start(m, s.Done); return nil })
	ctx := o.ctx.as(id, r.Rest == nil)
	k := r.sys.kind(s.Calls[0])
	var err error
	switch {
	case s.Way == Method:
		err = r.goes(s, func() { r.ended(id, protected(func() string { return k.Run(ctx, s.Calls[0].Arg) })) })
	case s.Way == Then && r.Then != nil && (len(s.Calls) == 1 || r.Rest == nil): // Choose cannot be repeated
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
				cases[i] = suspend.On(r.opOf([]Call{c}, false))
			}
			sel := suspend.Select
			if r.Rest != nil {
				sel = suspend.SelectOrdered // can be repeated
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

// opOf is the Op of several calls, which says which one it was.
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

// protected is what f returns, or that it panics.
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

func (r *run) cancel(id int, err error, s Step) {
	o := r.ops[id]
	if o.leaves || o.seen {
		return
	}
	o.leaves = true
	if err == context.DeadlineExceeded {
		r.worlds.ops[id].reason = "late"
	}
	r.see(func(w *Worlds) error { w.cancel(id); return nil })
	if s.Way == Method {
		o.ctx.end(err)
	} else if refused := r.goes(s, func() { o.ctx.end(err) }); refused != nil {
		r.fail(fmt.Errorf("the scheduler refuses a task: %w", refused))
	}
}

func (r *run) turn(n int) {
	for range n {
		if r.err == nil && !r.Turn() {
			r.fail(errors.New("the scheduler does not run a new task"))
		}
	}
}

// goes starts a task that yields first.
func (r *run) goes(s Step, f func()) error {
	r.toBegin.Add(1)
	return r.On.Go(func() {
		for range s.Turns {
			suspend.Yield()
		}
		r.toBegin.Add(-1)
		f()
	})
}

// begun waits until all tasks are about to call their operations.
func (r *run) begun() {
	for end := time.Now().Add(r.Patience); r.toBegin.Load() > 0 && r.err == nil; r.turn(1) {
		if time.Now().After(end) {
			r.fail(errors.New("the scheduler does not run a task"))
		}
	}
}

// ended is called by an operation that has.
func (r *run) ended(id int, result string) {
	r.mu.Lock()
	r.log = append(r.log, end{id, result})
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// see takes note of something.
func (r *run) see(event func(w *Worlds) error) {
	r.events = append(r.events, event)
	err := event(r.worlds)
	if err != nil && r.Rest == nil {
		err = r.doubt()
	}
	if err != nil {
		r.fail(err)
	}
}

// doubt drops the assumption that all operations without a result have begun. It fails if the results are impossible without it as
// well.
func (r *run) doubt() error {
	r.worlds = newWorlds(r.objs)
	for _, event := range r.events {
		if err := event(r.worlds); err != nil {
			return err
		}
	}
	return nil
}

// look looks at the operations that have ended.
func (r *run) look() {
	r.mu.Lock()
	news := r.log[r.looked:]
	r.looked = len(r.log)
	r.mu.Unlock()
	for _, e := range news {
		o := r.ops[e.id]
		if o.seen {
			r.fail(fmt.Errorf("%s has returned twice, now %q", r.worlds.ops[e.id].name, e.result))
			return
		}
		o.seen = true
		if r.see(func(w *Worlds) error { return w.returned(e.id, e.result) }); r.err != nil {
			return
		}
		if r.Seen != nil {
			r.Seen[r.what(o, e.result)]++
		}
	}
}

var number = regexp.MustCompile(`-?\d+`)

// what names an outcome.
func (r *run) what(o *running, result string) string {
	c, in := o.calls[0], ""
	if len(o.calls) > 1 {
		in = "Select: "
		var i int
		if n, _ := fmt.Sscanf(result, "case %d: ", &i); n == 1 {
			c, result = o.calls[i], "won"
		}
	}
	return fmt.Sprintf("%s%s.%s: %s", in, r.sys.Parts[c.Part].Name, r.sys.kind(c).Name, number.ReplaceAllString(result, ""))
}

// settle waits until nobody can go on, and compares.
func (r *run) settle() {
	if r.Rest != nil {
		r.Rest()
		r.look()
	}
	if r.err != nil {
		return
	}
	if r.Rest != nil && !r.sys.Slow {
		if err := r.worlds.rest(true); err != nil {
			r.fail(err)
		}
		return
	}
	if r.Rest == nil {
		r.begun()
		r.turn(3)
	}
	doubted := false
	for begun := time.Now(); ; {
		if r.look(); r.err != nil {
			return
		}
		err := r.worlds.rest(false)
		if err == nil {
			_ = r.worlds.rest(true)
			return
		}
		waited := time.Since(begun)
		if waited > r.Patience/4 && r.Rest == nil && !doubted {
			doubted = true
			_ = r.doubt()
			continue
		}
		if waited > r.Patience {
			r.fail(fmt.Errorf("after %v: %w", r.Patience, err))
			return
		}
		if r.Rest != nil {
			time.Sleep(10 * time.Microsecond) // for another goroutine, that nobody tells of
			r.Rest()
			continue
		}
		timer := time.NewTimer(r.Patience / 8)
		select {
		case <-r.news:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Uncovered returns the possible results of a Spec that no operation has returned. For Selects these are the cases that can win.
func Uncovered(spec Spec, seen map[string]int) (missing []string) {
	sys := spec.New(func(int) int { return 0 })
	for _, part := range sys.Parts {
		for _, k := range part.Kinds {
			name := fmt.Sprintf("%s.%s: ", part.Name, k.Name)
			var want []string
			if !sys.Selects || len(sys.Parts) == 1 {
				for r := range strings.SplitSeq(k.Seen, ",") {
					want = append(want, name+r)
				}
				if !k.Try {
					want = append(want, name+"cancelled")
				}
			}
			if sys.Selects && k.Op != nil {
				want = append(want, "Select: "+name+"won")
			}
			for _, what := range want {
				if seen[what] == 0 && what != name {
					missing = append(missing, what)
				}
			}
		}
	}
	return missing
}

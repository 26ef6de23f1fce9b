package model

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Place is the environment in which a program runs.
type Place struct {
	On   suspend.Spawner
	Then suspend.Executor // runs the callbacks of suspend.Then; may be nil

	// Rest waits until no task can run. If Rest is nil, a run instead waits natively for the results that the models require.
	Rest func()

	// Turn lets another task run, and reports whether a task could run.
	Turn func() bool

	// Patience limits the wait for a result that the models require.
	Patience time.Duration

	// Seen counts the results of operations, by part, kind and result.
	Seen map[string]int
}

// A run is one execution of a program.
type run struct {
	Place
	sys    *System
	objs   []Object
	worlds *Worlds
	events []func(w *Worlds) error // the events of the run, in order
	ops    []*running              // operations by id
	err    error

	toBegin atomic.Int32

	mu     sync.Mutex
	log    []end
	news   chan struct{} // receives a value after r.log has grown; its capacity is 1
	looked int           // the length of r.log at the last call of r.seeResults
}

type running struct {
	ctx    *ctx
	calls  []Call
	leaves bool // the operation's context has ended or is about to end
	seen   bool
}

type end struct {
	id     int
	result string
}

// Run runs the program, and returns an error if a result is wrong. It does not wait for operations that ignore their cancellation.
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
	ids := map[int]int{} // ids maps Step.ID to an index of r.ops; omitted operations have no entry
	for i, s := range p.Steps {
		id, started := ids[s.ID]
		switch s.Do {
		case Start:
			if len(r.worlds.all) > tooMany || r.waiting() >= most {
				r.awaitRest()
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
			r.letOthersRun(s.Turns)
		case Settle:
			r.awaitRest()
		}
		r.seeResults()
		if r.failed(fmt.Sprintf("%s: ", p.line(p.Steps[i]))) {
			return r.err
		}
	}
	r.awaitRest()
	for id := range r.ops {
		if r.cancel(id, context.Canceled, Step{}); len(r.worlds.all) > 20 {
			r.awaitRest()
		}
	}
	r.awaitRest()
	if r.failed("after all were cancelled: ") {
		return r.err
	}
	for i, c := range r.sys.Probe {
		s := Step{Do: Start, ID: maxOps + i, Calls: []Call{c}}
		r.start(s)
		r.awaitRest()
		if r.failed(fmt.Sprintf("after all were cancelled, %s: ", p.line(s))) {
			return r.err
		}
	}
	return nil
}

// The constant most limits the number of waiting operations, and tooMany limits the number of worlds. Above a limit, Run calls awaitRest,
// and may leave out the next operation. Without Rest there are more worlds, because an operation that has not returned might not have
// begun.
const (
	most    = 5
	tooMany = 500
)

// failed reports whether the run has failed. In a failed run, it ends the contexts of all operations, so that their tasks can end.
func (r *run) failed(where string) bool {
	if r.err == nil {
		return false
	}
	r.err = fmt.Errorf("%s%w", where, r.err)
	for _, o := range r.ops {
		o.ctx.cancel(context.Canceled)
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
		o.ctx.cancel(err)
	} else if refused := r.goes(s, func() { o.ctx.cancel(err) }); refused != nil {
		r.fail(fmt.Errorf("the scheduler refuses a task: %w", refused))
	}
}

func (r *run) letOthersRun(n int) {
	for range n {
		if r.err == nil && !r.Turn() {
			r.fail(errors.New("the scheduler does not run a new task"))
		}
	}
}

// goes starts a task that yields s.Turns times and then calls f.
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
	for end := time.Now().Add(r.Patience); r.toBegin.Load() > 0 && r.err == nil; r.letOthersRun(1) {
		if time.Now().After(end) {
			r.fail(errors.New("the scheduler does not run a task"))
		}
	}
}

// ended is called by an operation's task when the operation returns.
func (r *run) ended(id int, result string) {
	r.mu.Lock()
	r.log = append(r.log, end{id, result})
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// see records an event, and applies the function event to the worlds.
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

// doubt computes the worlds again, without the assumption that operations without a result have begun. It returns an error if the results
// are still impossible.
func (r *run) doubt() error {
	r.worlds = newWorlds(r.objs)
	for _, event := range r.events {
		if err := event(r.worlds); err != nil {
			return err
		}
	}
	return nil
}

// seeResults processes the results that ended has recorded since its last call.
func (r *run) seeResults() {
	r.mu.Lock()
	news := r.log[r.looked:]
	r.looked = len(r.log)
	r.mu.Unlock()
	for _, e := range news {
		o := r.ops[e.id]
		if o.seen {
			r.fail(fmt.Errorf("%s returned twice; the second result is %q", r.worlds.ops[e.id].name, e.result))
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

// what returns the key under which Seen counts this result of the operation.
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

// awaitRest waits until no task can run, and compares the results with the worlds.
func (r *run) awaitRest() {
	if r.Rest != nil {
		r.Rest()
		r.seeResults()
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
		r.letOthersRun(3)
	}
	doubted := false
	for begun := time.Now(); ; {
		if r.seeResults(); r.err != nil {
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
			time.Sleep(10 * time.Microsecond) // another goroutine may still have to pass on a cancellation
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

package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Errors is the error of a batch in which only some tasks have failed. Errors[i] is the error of in[i], or nil if that task has
// succeeded. An empty Errors, which may be nil, means that no task has failed.
type Errors []error

func (e Errors) Error() string {
	n := 0
	var first error
	for _, err := range e {
		if err != nil {
			if n++; first == nil {
				first = err
			}
		}
	}
	return fmt.Sprintf("%d of %d failed, the first with: %v", n, len(e), first)
}

// NewBatch returns a stage that calls f with the waiting tasks, at most o.Batch of them; out[i] is the result of in[i]. An idle
// stage calls f with single tasks and without a delay, unless Gather is set. A loaded stage has large batches. Width counts batches.
// f must not keep the slices in and out after it returns. If f returns an Errors, only the tasks with an error in it fail. The Errors may be
// wrapped, as by fmt.Errorf with one %w. If its length differs from the number of tasks, it does not say which of them have failed, so
// all fail. Any other error also fails all tasks. Retry is called for each failed task.
//
// The context of f has no values. This context ends only when a Close cuts the stage off, so f does not see that a Do was cancelled.
// A task begun with this context is a child of all tasks of the batch.
func NewBatch[In, Out any](name string, f func(ctx context.Context, in []In, out []Out) error, o Options) *Stage[In, Out] {
	if f == nil {
		panic("stage: nil function")
	}
	if o.Batch == 0 {
		o.Batch = 64
	}
	s := newStage[In, Out](name, o)
	s.batchFunc = f
	return s
}

// A batch is one call of f. The tasks of the batch are not done before the batch's own task is done.
type batch[In, Out any] struct {
	task
	s     *Stage[In, Out]
	items []item[In, Out]
	in    []In // the inputs of the tasks that have begun
	out   []Out
	ends  []memberEnd
}

// A memberEnd says how one task of a batch has ended.
type memberEnd struct {
	verdict
	owed    owed
	passed  bool // the task has entered the next stage, and its fate is counted
	settled bool // the verdict has been set
	adopted bool // the batch counts as a child of the task
}

// settled is called when f has returned and every child of the batch is done.
func (b *batch[In, Out]) settled(err error) {
	for i := range b.items {
		if b.ends[i].adopted {
			b.items[i].t.countDown(err)
		}
	}
}

// The type members is the base context of a batch, and has no values.
type members[In, Out any] struct {
	context.Context
	b *batch[In, Out]
}

func (m members[In, Out]) has(t *task) bool {
	return slices.ContainsFunc(m.b.items, func(e item[In, Out]) bool { return e.t == t })
}

func (m members[In, Out]) lends(c *core) bool {
	return slices.ContainsFunc(m.b.items, func(e item[In, Out]) bool { return c.lends(e.t) })
}

// serveBatch does for batches what serve does for single tasks.
func (s *Stage[In, Out]) serveBatch(w *worker) {
	if s.paced && s.holds(w) {
		return
	}
	b := &batch[In, Out]{s: s}
	b.values, b.answer = members[In, Out]{context.Background(), b}, b
	b.at = &s.core
	b.gid.Store(w.gid)
	s.taken++
	for len(b.items) < s.o.Batch && s.waiting > 0 {
		var e item[In, Out]
		s.pop(&e)
		s.progress++
		f := completed
		if s.begun(e.since, w.now) {
			f = late
		}
		b.items = append(b.items, e)
		b.ends = append(b.ends, memberEnd{verdict: verdict{fate: f}, adopted: e.t.adopt()}) // false if asking.examine has ended the task
	}
	w.at, w.task = &s.core, &b.task
	s.pool.unlockAndPay()
	w.owed.pay()
	w.named(&s.core)

	returned := false
	defer func() {
		if !returned {
			b.abandoned(w, 0)
		}
	}()
	b.perform(w)
	b.decide()
	returned = true
	s.taken--
	for i := range b.items {
		if e := &b.ends[i]; !e.passed {
			s.finish(&b.items[i], &e.verdict, w.now, &e.owed)
		}
	}
	s.lose()
	w.owed.after = b
}

// decide locks the guard for the calls of s.finish that follow. Tasks that a Close cuts off while f runs are not tried again.
func (b *batch[In, Out]) decide() {
	b.s.pool.guard.Lock()
	for i := range b.items {
		if e := &b.ends[i]; b.s.cut && e.fate == again {
			b.s.pool.guard.Unlock()
			b.s.giveUp(b.items[i].t, b.items[i].in, e.err, &e.verdict)
			b.s.pool.guard.Lock()
		}
	}
}

// start does what is left to do for each member, and ends the batch's own task.
func (b *batch[In, Out]) start() {
	for i := range b.ends {
		b.ends[i].owed.pay()
	}
	b.countDown(nil)
}

func (b *batch[In, Out]) perform(w *worker) {
	s := b.s
	defer func() { w.now = w.p.now() }()
	for i := range b.items {
		t, e := b.items[i].t, &b.ends[i]
		t.at = &s.core
		t.gid.Store(w.gid)
		if e.fate == late || t.unwanted() {
			s.notBegun(t, b.items[i].in, &e.verdict)
			e.settled = true
		} else {
			b.in = append(b.in, b.items[i].in)
		}
	}
	if len(b.in) == 0 {
		s.notPaced()
		return
	}
	b.out = make([]Out, len(b.in))
	w.now = w.p.now()
	start := w.now
	var err error
	if s.o.OnPanic == nil {
		err = s.batchFunc(b, b.in, b.out)
	} else {
		err = s.recovered(func() error { return s.batchFunc(b, b.in, b.out) })
	}
	w.now = w.p.now()
	each := (w.now - start) / int64(len(b.in))
	some, all := errorsOf(err, len(b.in))
	n := 0
	for i := range b.items {
		e := &b.ends[i]
		if e.settled {
			continue
		}
		own := all
		if some != nil {
			own = some[n]
		}
		e.service = each
		if it := &b.items[i]; s.handOn(it, b.out[n], own, &w.now, &e.verdict, &e.owed.dues) {
			e.passed = true
			s.countFate(it, completed, e.service, w.now)
			s.pool.unlockAndPay()
			e.owed.pay()
		}
		e.settled = true
		n++
	}
}

// errorsOf returns the errors of the n tasks of a batch whose function has returned err, or the error of all these tasks. Of several
// joined errors, errorsOf takes none for the whole, so that the others are not lost.
func errorsOf(err error, n int) (some Errors, all error) {
	some, plain := err.(Errors)
	for in := err; some == nil && in != nil; in = errors.Unwrap(in) {
		some, _ = in.(Errors)
	}
	switch {
	case plain && len(some) == 0:
		return nil, nil
	case some != nil && len(some) != n:
		return nil, fmt.Errorf("stage: %d errors for %d tasks: %w", len(some), n, err)
	case some != nil:
		return some, nil
	}
	return nil, err
}

// abandoned gives up the tasks from index n on whose fate is not decided, while a panic or a runtime.Goexit ends the worker. If
// OnFail does not return either, a deferred call continues with the next task.
func (b *batch[In, Out]) abandoned(w *worker, n int) {
	defer func() {
		if n < len(b.items) {
			b.abandoned(w, n)
		} else {
			b.finish(w)
		}
	}()
	for n < len(b.items) {
		n++
		if it, e := &b.items[n-1], &b.ends[n-1]; !e.passed && (!e.settled || e.fate == again) {
			e.verdict = verdict{fate: failed, err: errAbandoned}
			b.s.report(it.t, it.in, errAbandoned)
		}
	}
}

func (b *batch[In, Out]) finish(w *worker) {
	s := b.s
	p := s.pool
	p.guard.Lock()
	p.running--
	w.at, w.task = nil, nil
	s.taken--
	now := p.now()
	for i := range b.items {
		if e := &b.ends[i]; !e.passed {
			s.finish(&b.items[i], &e.verdict, now, &e.owed)
		}
	}
	s.lose()
	p.unlockAndPay()
	b.start()
	p.guard.Lock()
	p.endWorker(w)
}

package stage

import (
	"context"
	"runtime/debug"
	"runtime/pprof"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// work is the body of a worker. The worker holds a permit when work begins.
func (w *worker) work() {
	p := w.p
	w.gid = gid.Get()
	w.now = p.now()
	how := called
	for how != dismissed {
		p.guard.Lock()
		if how == called {
			p.coming--
		}
		w.serveStages()
		for !p.linger && w.owed.any() { // the worker must not end before its last task is answered
			p.unlockAndPay()
			w.owed.pay()
			p.guard.Lock()
			w.serveStages()
		}
		p.running--
		w.at, w.task = nil, nil
		if !p.linger {
			p.endWorker(w)
			return
		}
		p.unlockAndPay()
		w.owed.pay()
		how, _ = suspend.Wait[wake](context.Background(), idling{w})
		w.now = p.now()
	}
	p.guard.Lock()
	p.endWorker(w)
}

// serveStages runs tasks until none can begin. The caller must hold p.guard, which is held again when serveStages returns.
func (w *worker) serveStages() {
	p := w.p
	for c := p.nextStage(); c != nil; c = p.nextStage() {
		c.server.serve(w)
		if c.o.Limit != nil {
			p.adjust(w, c)
		}
	}
}

// named sets the name of the stage as a label of the worker's goroutine, for profiles.
func (w *worker) named(c *core) {
	if w.p.linger && w.label != c {
		w.label = c
		pprof.SetGoroutineLabels(c.labels)
	}
}

// serve takes the next task from the queue, and serves it until it leaves the stage or is delayed. The caller must hold the guard,
// which is held again when serve returns.
func (s *Stage[In, Out]) serve(w *worker) {
	if s.batchFunc != nil {
		s.serveBatch(w)
		return
	}
	if s.paced && s.holds(w) {
		return
	}
	// Step 7 of a task, see do.go.
	var e item[In, Out]
	isLate := s.take(w, &e)
	w.owed.pay()
	w.named(&s.core)

	returned := false
	defer func() {
		if !returned {
			s.abandoned(w, &e)
		}
	}()
	v := verdict{}
	if _, passed := s.perform(&e, isLate || e.t.unwanted(), w.gid, &w.now, &v, &w.owed.dues); passed {
		returned = true
		s.taken--
		s.countFate(&e, completed, v.service, w.now)
		return
	}
	s.decide(&e, &v)
	returned = true
	s.taken--
	s.finish(&e, &v, w.now, &w.owed)
}

// perform runs the handler and sets v. If skip is true, the task is late or over, and the handler does not run. The caller sets *now
// to the time of the last event, and perform updates *now.
func (s *Stage[In, Out]) perform(e *item[In, Out], skip bool, gid int64, now *int64, v *verdict, due *dues) (out Out, passed bool) {
	e.t.at = &s.core
	e.t.gid.Store(gid)
	if skip {
		s.notPaced()
		s.notBegun(e.t, e.in, v)
		*now = s.pool.now()
		return out, false
	}
	start := *now
	// Step 8.
	out, err := s.callHandler(e.t, e.in)
	*now = s.pool.now()
	v.service = *now - start
	return out, s.handOn(e, out, err, now, v, due)
}

// callHandler calls the handler. If OnPanic is set, callHandler turns a panic into an error.
func (s *Stage[In, Out]) callHandler(ctx context.Context, in In) (out Out, err error) {
	if s.o.OnPanic == nil {
		return s.f(ctx, in)
	}
	err = s.recovered(func() (err error) {
		out, err = s.f(ctx, in)
		return err
	})
	return out, err
}

// handOn passes the result to the next stage or to the answer. After an error, it sets v. If passed is true, the task has entered
// the next stage, and the guard is held.
func (s *Stage[In, Out]) handOn(e *item[In, Out], out Out, err error, now *int64, v *verdict, due *dues) (passed bool) {
	// Step 9.
	gid := e.t.gid.Load()
	if s.o.RetryBudget != nil && e.t.tries == 0 {
		s.o.RetryBudget.deposit()
	}
	switch {
	case err == nil && e.way.to == nil:
		e.t.gid.Store(0) // the handler has returned, and its goroutine may soon run another handler
		give(e.t, out)
		return false
	case err != nil:
		if s.failure(e.t, e.in, err, v); s.onFail != nil { // OnFail may take time
			*now = s.pool.now()
		}
		e.t.gid.Store(0)
		return false
	}
	e.t.gid.Store(0)
	if *due, passed = e.way.to.pass(e.t, out, *now, &s.core); passed {
		return true
	}
	err = e.way.to.put(s.patience(e.t), e.t, out, always, &s.core)
	*now = s.pool.now()
	if err != nil {
		e.t.gid.Store(gid) // OnFail counts as a part of the handler
		s.giveUp(e.t, e.in, err, v)
		e.t.gid.Store(0)
	}
	return false
}

// give stores the result of t, which is about to leave its last stage.
func give[Out any](t *task, out Out) {
	switch a := t.answer.(type) {
	case *reply[Out]:
		a.out = out
	case *fed[Out]:
		a.out = out
	}
}

func (g *entrance[In, Out]) pass(t *task, in In, now int64, from *core) (due dues, ok bool) {
	s := g.s
	p, q := from.pool, s.pool
	if p != q && (p.clock != nil || q.clock != nil) { // the clocks of the two pools may differ
		now = q.now()
	}
	s.rank(t, in)
	guards := suspend.Guards{&p.guard, &q.guard}.Lock()
	if s.closed || !s.admits(t) {
		guards.Unlock()
		return due, false
	}
	s.accept(g, t, in, now)
	q.suspect(t.asked)
	if p != q {
		due = q.unlock()
	}
	return due, true
}

// decide locks the guard for the call of s.finish that follows. A task that a Close cuts off while its handler runs is not tried
// again.
func (s *Stage[In, Out]) decide(e *item[In, Out], v *verdict) {
	s.pool.guard.Lock()
	if v.fate == again && s.cut {
		s.pool.guard.Unlock()
		s.giveUp(e.t, e.in, v.err, v)
		s.pool.guard.Lock()
	}
}

// finish counts the fate of a task that was in progress. What remains to be done after the unlock is stored in o, which must be
// empty: the slot of a task must be free before the task ends.
func (s *Stage[In, Out]) finish(e *item[In, Out], v *verdict, now int64, o *owed) {
	// Step 10.
	switch {
	case v.fate == again:
		o.after = s.postpone(*e, v.after)
	case v.fate != completed || e.way.to == nil:
		o.leave, o.err = e.t, v.err
	}
	s.countFate(e, v.fate, v.service, now)
}

// countFate counts the fate of a task that is no longer in progress. The slot of the task must be free.
func (s *Stage[In, Out]) countFate(e *item[In, Out], f fate, service, now int64) {
	s.progress--
	switch f {
	case completed:
		s.completed++
	case failed:
		s.failed++
	case dropped:
		s.failed++
		s.dropped++
	case late:
		s.late++
	case cancelled:
		s.cancelled++
	}
	if f != late && f != cancelled && service != notServed {
		s.service.add(service)
		s.window.done++
		if f != completed {
			s.window.failed++
		}
		s.window.service += service
	}
	if f != again {
		if e.ticket == lent {
			s.lent--
		}
		s.settleIf()
		s.admit(now)
	}
	s.lose()
}

// patience returns the context with which a worker waits for room in the next stage. If t was submitted, only a Close that cuts the
// stage off ends this context.
func (s *Stage[In, Out]) patience(t *task) context.Context {
	if t.until != cut {
		return t
	}
	s.pool.guard.Lock()
	defer s.pool.guard.Unlock()
	if s.blocking == nil {
		s.blocking, s.unblock = cancel.New(context.Background())
		if s.cut {
			s.unblock(ErrClosed)
		}
	}
	return s.blocking
}

func (c *core) recovered(f func() error) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // recover returns nil after a runtime.Goexit, which continues
			stack := debug.Stack()
			c.o.OnPanic(v, stack)
			err = &panicked{suspend.PanicError{Value: v, Stack: stack}}
		}
	}()
	err = f()
	returned = true
	return err
}

// abandoned gives up the task while a panic or a runtime.Goexit ends the worker.
func (s *Stage[In, Out]) abandoned(w *worker, e *item[In, Out]) {
	defer func() {
		s.abandon(e)
		s.pool.guard.Lock()
		s.pool.endWorker(w)
	}()
	s.report(e.t, e.in, errAbandoned)
}

// abandon fails a task whose handler has not returned, and gives back its slot and permit.
func (s *Stage[In, Out]) abandon(e *item[In, Out]) {
	var o owed
	s.pool.guard.Lock()
	s.vacate(e, &verdict{fate: failed, err: errAbandoned}, s.pool.now(), &o)
	o.pay()
}

// vacate gives back the slot and the permit of a handler, and counts the fate. The caller must hold the guard, and vacate unlocks it
// before it returns.
func (s *Stage[In, Out]) vacate(e *item[In, Out], v *verdict, now int64, o *owed) {
	s.taken--
	s.pool.running--
	s.finish(e, v, now, o)
	s.pool.unlockAndPay()
}

package stage

import (
	"context"
	"math"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// Go runs f as a task of a stage that shares p with the other stages. Thus p is a suspend.Spawner with a bounded width, for example
// for scope.Map. The queue of these functions has no bound, because Go never suspends and a scheduler refuses no task; for a bounded
// queue, use a stage. After Close or Shutdown, Go fails with ErrClosed, and f never runs.
//
// A function keeps its permit while it waits. It must not wait for a function that is queued in the same pool: a Map inside a Map on
// one narrow pool may wait until its context ends. Use a separate pool for inner tasks.
func (p *Pool) Go(f func()) error { return p.acceptFunction(&function{p: p, f: f}) }

// GoUntil implements sched.Withdrawer: if ctx ends while f is queued, f never runs, and withdrawn is called instead. Package scope
// uses GoUntil, so a scope that has ended does not wait for other users of p.
func (p *Pool) GoUntil(ctx context.Context, f, withdrawn func()) error {
	if withdrawn == nil {
		panic("stage: nil function")
	}
	return p.acceptFunction(&function{p: p, f: f, ctx: ctx, withdrawn: withdrawn})
}

// Close refuses further functions, and waits until the accepted functions have ended. It waits, unlike the Close of a stage, because p is
// the scheduler of these functions: nobody would learn that one was lost. Close does not close the other stages of p. A function of
// p must not call Close, because Close would wait for the function.
func (p *Pool) Close() error { return p.Shutdown(context.Background()) }

// Shutdown is Close with a limit. If ctx is done first, Shutdown returns the cancellation error. The queued functions then begin at
// once, whatever the width of p is, because a scheduler runs every function that it has accepted.
func (p *Pool) Shutdown(ctx context.Context) error { return p.functions().Shutdown(ctx) }

// A function is a task that runs a function given to Go or GoUntil. In the diagram, -W> is a worker, and -C> the end of ctx.
//
//	queued -W> claimed  f runs
//	queued -C> claimed  the task is gone, and f is withdrawn
type function struct {
	task
	p         *Pool
	f         func()
	ctx       context.Context // withdraws f; nil if f is never withdrawn
	withdrawn func()
	claimed   atomicx.Bool
	stop      atomicx.Pointer[func() bool] // stops the AfterFunc of ctx; pairs with claimed, so that acceptFunction or begin calls it
}

func (p *Pool) acceptFunction(x *function) error {
	if x.f == nil {
		panic("stage: nil function")
	}
	x.values = context.Background()
	if err := handIn(x.values, &x.task, p.functions().front(), x, never, nil); err != nil || x.ctx == nil {
		return err
	}
	stop := cancel.AfterFunc(x.ctx, x.withdraw)
	if x.stop.Store(&stop); x.claimed.Load() {
		stop()
	}
	return nil
}

// begin reports whether x.f must run now.
func (x *function) begin() bool {
	if !x.claimed.CompareAndSwap(false, true) {
		return false
	}
	if stop := x.stop.Load(); stop != nil {
		(*stop)()
	}
	if x.ctx != nil && x.ctx.Err() != nil { // x.ctx may not have called x.withdraw yet
		x.withdrawn()
		return false
	}
	return true
}

// withdraw is called when x.ctx ends.
func (x *function) withdraw() {
	if x.claimed.CompareAndSwap(false, true) {
		x.gone.Store(true)
		x.p.functions().sweepSome()
		x.withdrawn()
	}
}

// functions returns the stage that runs the functions given to Go. The first call makes the stage. Only the pool bounds its width, which
// may change.
func (p *Pool) functions() *Stage[*function, struct{}] {
	if p.funcs.Load() == nil {
		p.making.Lock()
		defer p.making.Unlock()
		suspend.Bind(nil, func() { // otherwise the model checker would switch to another task at a guard while the lock is held
			if p.funcs.Load() == nil {
				var s Flow[*function, struct{}] = New(p.name, func(_ context.Context, x *function) (none struct{}, err error) {
					if x.begin() {
						x.f()
					}
					return none, nil
				}, Options{Pool: p, Width: math.MaxInt / 4, Queue: math.MaxInt / 4}).OnFail(p.runCutOff)
				p.funcs.Store(&s)
			}
		})
	}
	return (*p.funcs.Load()).(*Stage[*function, struct{}])
}

// runCutOff runs a function that a Shutdown has cut off. If x has already begun and did not return, runCutOff does nothing.
func (p *Pool) runCutOff(_ context.Context, x *function, _ error) {
	if x.begin() && p.on.Go(x.f) != nil {
		go x.f()
	}
}

// sweepSome removes the queued tasks that are gone, if there were enough calls since the last sweep.
func (s *Stage[In, Out]) sweepSome() {
	var gone []item[In, Out]
	s.pool.guard.Lock()
	if s.sweepDue() {
		gone = s.sweep(s.pool.now())
	}
	s.pool.unlockAndPay()
	for _, e := range gone {
		e.t.ends(suspend.Err(e.t))
	}
}

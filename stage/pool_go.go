package stage

import (
	"context"
	"fmt"
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

// Close refuses further functions, and waits until the accepted functions have returned, also those that a Shutdown has cut off. It waits,
// unlike the Close of a stage, because p is the scheduler of these functions: nobody would learn that one was lost. Close does not close
// the other stages of p. A function of p must not call Close, because Close would wait for the function. A second Close waits in the same
// way, and returns nil.
func (p *Pool) Close() error { return p.Shutdown(context.Background()) }

// Shutdown is Close with a limit. If ctx is done first, Shutdown cuts the queued functions off: they begin at once, whatever the width of p
// is, because a scheduler runs every function that it has accepted. Shutdown then returns the cancellation error, which says how many
// functions have not returned. A later Close or Shutdown continues the wait.
func (p *Pool) Shutdown(ctx context.Context) error {
	s := p.functions()
	s.refuseNew()
	err := s.waitEmpty(ctx)
	if err == nil { // no function can be cut off any more
		_, err = suspend.Wait[struct{}](ctx, returning{p})
	} else {
		_ = s.cutOff(err) // its functions are not lost, although it counts them as given up
	}
	if err != nil {
		p.guard.Lock()
		left := s.inside() + p.cut
		p.guard.Unlock()
		if left > 0 {
			return fmt.Errorf("%s: closed while %d functions have not returned: %w", p.name, left, err)
		}
	}
	p.waitWorkers(ctx)
	return nil
}

// A returning is the Source of the wait for the functions that were cut off.
type returning struct{ p *Pool }

func (r returning) Guard() *suspend.Guard                    { return &r.p.guard }
func (r returning) Try() (none struct{}, ok bool, err error) { return none, r.p.cut == 0, nil }
func (r returning) Enqueue(w suspend.Resumer[struct{}])      { r.p.waiters.Push(w, struct{}{}) }
func (r returning) Remove(w suspend.Resumer[struct{}])       { r.p.waiters.Remove(w) }

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

// runCutOff runs a function that a Shutdown has cut off, outside of the stage. If x has already begun and did not return, runCutOff does
// nothing. The stage counts x until runCutOff returns, so one of the two counts x until x.f has returned.
func (p *Pool) runCutOff(_ context.Context, x *function, _ error) {
	if !x.begin() {
		return
	}
	p.guard.Lock()
	p.cut++
	p.guard.Unlock()
	run := func() {
		defer p.hasReturned()
		x.f()
	}
	if p.on.Go(run) != nil {
		go run()
	}
}

// hasReturned is called when a function that was cut off has returned.
func (p *Pool) hasReturned() {
	p.guard.Lock()
	if p.cut--; p.cut == 0 {
		p.waiters.ResumeAll(struct{}{}, nil)
	}
	letGo := p.letGo()
	p.guard.Unlock()
	letGo()
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

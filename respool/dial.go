package respool

import (
	"context"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/abandoned"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A dial is a call of Open, and the Acquire that has started it. The call goes on when the Acquire has ended, and the Acquire takes
// the first resource that is opened or released for it. The Acquires are served in their order.
//
//	waits, opens  -O> served, over   the Open ends: its resource is for the first Acquire that waits
//	waits, opens  -R> served, opens  a Release: its resource is for the first Acquire that waits
//	waits, opens  -A> left, opens    the Acquire gives up
//	left or served, opens -O> over   as above, or the resource becomes idle
//
// Invariant: a dial that opens has a seat, that is, a permit and a place as a user. An Acquire that is served gets that of the resource.
// Invariant: at least as many calls of Open last as Acquires wait: p.open >= p.waiting.
type dial[R any] struct {
	result opened[R]                                // set when the Acquire is served, under p.mu
	err    error                                    // likewise
	served promise.Promise[struct{}]                // filled afterwards, since the model checker may switch tasks at a Fill
	cancel atomicx.Pointer[context.CancelCauseFunc] // cancels the context of Open
	waits  dlist.Node[*dial[R]]                     // in p.dials
	opens  dlist.Node[*dial[R]]                     // in p.opening
	seat   seat[R]                                  // while the dial opens
	resets int                                      // p.resets when the dial began
}

// An opened is the result of an Open, or a resource that was released.
type opened[R any] struct {
	r     *resource[R]
	isNew bool            // r need not be checked
	ended outcome.Outcome // of an Open that has not returned
}

// dial starts a call of Open, and waits for a resource. The call of Open has the caller's seat own. If dial returns a resource, it returns
// the resource's seat, too, and otherwise an empty one.
func (p *Pool[R]) dial(ctx context.Context, own seat[R]) (s seat[R], r *resource[R], isNew bool, err error) {
	d := &dial[R]{}
	d.waits.Value, d.opens.Value = d, d
	if !p.begin(d) {
		own.leave()
		return s, nil, false, ErrClosed
	}
	d.seat = own
	started, got := false, false
	defer func() {
		if !started { // a method of ctx has panicked, or Go has
			p.openFailed(d, suspend.ErrAbandoned, outcome.Outcome{})
		}
		if !got && p.leave(d) && d.result.r != nil { // the task was killed
			p.putBack(d.result.r, d.result.isNew)
		}
	}()
	on := suspend.Here()
	if _, ok := suspend.As[sched.Watcher](on); !ok { // only such a scheduler, as a simulation, runs the call as its task
		on = suspend.Goroutines
	}
	inner, stop := cancel.New(context.WithoutCancel(ctx))
	d.cancel.Store(&stop)
	dropped := func() { p.openFailed(d, suspend.ErrAbandoned, outcome.Outcome{}) } // its node has crashed before it began
	if err := abandoned.Go(on, func() { p.run(inner, d) }, dropped); err != nil {
		p.openFailed(d, err, outcome.Outcome{})
	}
	p.cancelUnwanted() // a Close before d.cancel was set has missed it
	started = true
	if _, err := d.served.Await(ctx); err != nil && !p.leave(d) {
		got = true
		p.countCancelled()
		return s, nil, false, err
	} // the cancellation may have come when it was served
	got = true
	d.result.ended.Rethrow()
	if d.err == nil {
		s.pool = p
	}
	return s, d.result.r, d.result.isNew, d.err
}

func (p *Pool[R]) run(ctx context.Context, d *dial[R]) {
	defer (*d.cancel.Load())(nil)
	var v R
	var err error
	outcome.Of(func() {
		for v, err = p.o.Open(ctx); err == nil && p.isAgain(d); v, err = p.o.Open(ctx) {
			p.close(&resource[R]{value: v}) // before the next Open, because of Max
		}
	}, func(o outcome.Outcome) {
		if o.Returned() && err == nil {
			p.openSucceeded(d, &resource[R]{value: v, resets: d.resets, opened: suspend.Now()})
		} else {
			p.openFailed(d, err, o)
		}
	})
}

// isAgain reports whether d, which has opened a resource, must open another one, because there was a Reset and no other call of Open is
// left for the last Acquire. So the first Acquire keeps its place: it would lose it if it got the outdated resource.
func (p *Pool[R]) isAgain(d *dial[R]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.resets == p.resets || p.closed || p.waiting < p.open {
		return false
	}
	d.resets = p.resets
	p.total.Opened++
	return true
}

// begin adds d to the lists. It returns false if the pool is closed.
func (p *Pool[R]) begin(d *dial[R]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.dials.Push(&d.waits)
	p.opening.Push(&d.opens)
	d.resets = p.resets
	p.waiting++
	p.open++
	return true
}

// leave removes the Acquire of d from those that wait. It returns true if the Acquire was served before.
func (p *Pool[R]) leave(d *dial[R]) (served bool) {
	p.mu.Lock()
	served = !p.dials.Remove(&d.waits)
	if !served {
		p.waiting--
	}
	p.mu.Unlock()
	p.cancelUnwanted()
	return served
}

// cancelUnwanted cancels the calls of Open if the pool is closed and no Acquire waits for one of them.
func (p *Pool[R]) cancelUnwanted() {
	var all []context.CancelCauseFunc
	p.mu.Lock()
	if p.closed && p.waiting == 0 {
		for n := p.opening.First(); n != nil; n = n.Next() {
			if stop := n.Value.cancel.Load(); stop != nil {
				all = append(all, *stop)
			}
		}
	}
	p.mu.Unlock()
	for _, stop := range all {
		stop(ErrClosed)
	}
}

// openSucceeded ends the Open of d, which has opened r.
func (p *Pool[R]) openSucceeded(d *dial[R], r *resource[R]) {
	defer p.cancelUnwanted()
	r.idle = suspend.Now()
	preempt.Releases(preempt.Resources)
	p.mu.Lock()
	p.endOpenLocked(d)
	p.total.Opened++
	d.seat.pass()                     // to r
	kept, to := p.keepLocked(r, true) // in this section: an Open that fails must not fail the Acquire that gets r
	p.mu.Unlock()
	p.putAway(r, kept, to)
}

// openFailed ends the Open of d, which has opened nothing, with err or o. The Acquire of d gets this result if it still waits. If it was
// served before, by another Open, there may be an Acquire that this other Open would have served. The first one gets the result then.
func (p *Pool[R]) openFailed(d *dial[R], err error, o outcome.Outcome) {
	defer p.cancelUnwanted()
	p.mu.Lock()
	p.endOpenLocked(d)
	to := &d.waits
	if !p.dials.Has(to) {
		to = nil
		if p.waiting > p.open { // endOpenLocked has removed a call of Open, so there may be one less than Acquires that wait
			to = p.dials.First()
			if err == nil {
				err, o = abandoned.Error(suspend.ErrAbandoned, o.Value()), outcome.Outcome{}
			}
		}
	}
	if to != nil {
		p.serveLocked(to.Value, opened[R]{ended: o}, err)
	}
	p.mu.Unlock()
	if to != nil {
		to.Value.served.Fill(struct{}{})
	}
	d.seat.leave()
	if to == nil && !o.Exited() {
		o.Rethrow() // nobody else sees the panic
	}
}

func (p *Pool[R]) endOpenLocked(d *dial[R]) {
	p.opening.Remove(&d.opens)
	p.open--
}

// putBack passes r, with its permit and its place as a user, to the first Acquire that waits, or makes r idle, or closes it.
func (p *Pool[R]) putBack(r *resource[R], isNew bool) {
	defer p.cancelUnwanted()
	r.idle = suspend.Now()
	r.use = 0
	kept, to := p.keep(r, isNew)
	p.putAway(r, kept, to)
}

// keep is like keepLocked, for a caller that does not hold p.mu.
func (p *Pool[R]) keep(r *resource[R], isNew bool) (kept bool, to *dial[R]) {
	preempt.Releases(preempt.Resources)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keepLocked(r, isNew)
}

// serveLocked gives the result of an Open, or a resource, to the Acquire of d. The caller then fills d.served.
func (p *Pool[R]) serveLocked(d *dial[R], result opened[R], err error) {
	p.dials.Remove(&d.waits)
	p.waiting--
	d.result, d.err = result, err
}

// putAway wakes the Acquire to which r was passed, with its permit. If there is none, putAway releases the permit. If r was not kept,
// putAway closes it.
func (p *Pool[R]) putAway(r *resource[R], kept bool, to *dial[R]) {
	if to != nil {
		to.served.Fill(struct{}{})
	} else {
		p.permits.Release(1)
	}
	if !kept {
		defer p.removeUser()
		p.close(r)
	}
}

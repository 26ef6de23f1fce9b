package fetch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// A batch is one call of a source, and its requests.
//
//	queued   MaxOpen batches of the source run; a batch that loses its last waiter here is dropped as a whole
//	started  it runs, or is about to
//	called   the source is being called, or was
//
// Invariant: every batch comes to overLocked once, called or not. Otherwise its Run would wait for it for ever.
type batch struct {
	node     dlist.Node[*batch] // among the driver's
	t        *table
	d        *driver
	round    *round
	requests []*request          // in the order of asking
	one      [1]*request         // room for them
	ctx      cancelctx.Following // of the call
	frame    frame               // around ctx
	needed   int                 // requests that have waiters

	started, called, cancelled bool
	returned                   bool // the call, if there was one
	kept                       bool // only the end of the session cancels it, once it has started

	mu       atomicx.Mutex // of the answers, while the source is called
	over     bool          // no answer changes any more
	from, to time.Duration // of the call, for the trace
	then     *batch        // the next that can begin
}

func newBatch(t *table, r *round) *batch {
	b := &batch{t: t, d: r.d, round: r, kept: t.write}
	b.requests = b.one[:0]
	return b
}

// addLocked adds a pending request.
func (b *batch) addLocked(q *request) {
	q.state, q.b = open, b
	b.requests = append(b.requests, q)
	if q.waiters.First() != nil {
		b.needed++
	}
	if b.t.write {
		b.t.did = append(b.t.did, q)
	}
}

// openLocked reports whether b may run now. Otherwise it waits for its turn.
func (b *batch) openLocked() bool {
	s, t := b.t.s, b.t
	b.node.Value = b
	b.d.batches.Push(&b.node)
	b.round.open++
	s.open++
	s.tracer.sendLocked(b)
	if t.fullLocked() {
		t.queue = append(t.queue, b)
		return false
	}
	t.open++
	b.started = true
	return true
}

// fullLocked reports whether no more batches may run now.
func (t *table) fullLocked() bool { return t.opts.MaxOpen > 0 && t.open == t.opts.MaxOpen }

// nextLocked returns the batch whose turn it is.
func (t *table) nextLocked() (next *batch) {
	if len(t.queue) == 0 {
		return nil
	}
	next, t.queue = t.queue[0], t.queue[1:]
	next.started = true
	t.open++
	return next
}

// beginAll begins b and the batches after it, also if one is Inline and ends this goroutine.
func (b *batch) beginAll() {
	defer func() {
		if b != nil {
			b.beginAll()
		}
	}()
	for b != nil {
		first := b
		if b = b.then; first.t.opts.Mode == Inline && first.d.group == nil {
			suspend.Bind(nil, first.runAll)
		} else {
			goroutine(first.runAll)
		}
	}
}

// runAll runs b, and the batches that had to wait for its end. It is a loop, and its parts return before the next one begins, so that
// the stack that a goroutine begins with is enough.
func (b *batch) runAll() {
	for b != nil {
		b.run()
		b = b.finish()
	}
}

// run calls the source, unless b was cancelled in the meantime.
func (b *batch) run() {
	s := b.t.s
	b.ctx.Init(s.ctx, watching.Here)
	s.guard.Lock()
	b.called = !b.cancelled
	ended := s.ended
	if b.called && s.recorded == nil {
		s.stats.Batches++
		s.stats.Open++
		s.stats.Keys += len(b.requests)
		b.from = s.tracer.now()
	}
	s.guard.Unlock()
	if ended {
		b.ctx.Cancel(ErrEnded)
	}
	if b.called {
		b.frame = frame{Context: &b.ctx.Context, s: s, inSource: true}
		b.load()
	}
}

// load calls the source and makes an answer of all that it does.
func (b *batch) load() {
	var err error
	returned := false
	defer func() {
		var how outcome.Outcome
		if !returned {
			how = outcome.Recovered(recover())
		}
		if how.Exited() {
			err = ErrAbandoned
			defer goroutine(func() { b.finish().runAll() }) // this goroutine ends
		}
		b.conclude(err, how)
	}()
	if s := b.t.s; s.opts.OnBatch == nil || s.recorded != nil {
		err = b.t.call(&b.frame, b)
	} else {
		err = b.hooked()
	}
	returned = true
}

// hooked calls the source, and OnBatch around it, which is a part of the source.
func (b *batch) hooked() error {
	ctx, over := b.t.s.opts.OnBatch(&b.frame, BatchInfo{Source: b.t.name, Keys: len(b.requests), Round: b.round.number})
	err := ErrAbandoned // it panics, or exits
	if over != nil {
		defer func() { over(err) }()
	}
	err = b.t.call(ctx, b)
	return err
}

// conclude is the end of the call, which has returned err, or ended as how says. It makes the answers what every Get returns: an error
// says what failed.
func (b *batch) conclude(err error, how outcome.Outcome) {
	var cause error
	if b.ctx.Err() != nil {
		cause = context.Cause(&b.ctx.Context)
	}
	b.answer(err, cause, how)
	for _, q := range b.requests {
		q.passing = b.t.opts.Fresh
		if q.err != nil && !q.panicked() {
			q.passing = q.passing || cause != nil || passes(q.err)
			key, _ := b.t.pair(q)
			q.err = &Error{Source: b.t.name, Key: key, Err: q.err}
		}
	}
}

// answer makes an answer for each key. An error of the source is the answer to every key that has none of its own, also to one that was
// set: the value, or its absence, may be half of what the source would have read. cause is why the context of the call has ended, nil if
// it has not.
func (b *batch) answer(err, cause error, how outcome.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	failed := err != nil
	switch {
	case cause != nil:
		err = cause
	case err == nil:
		err = ErrNotFound
	}
	for _, q := range b.requests {
		switch {
		case !how.Returned() && !how.Exited():
			q.throw(how.Value())
		case q.panicked():
		case !q.set, failed && (q.err == nil || errors.Is(q.err, ErrNotFound)), cause == ErrEnded && q.err != nil: // q.err is the context's, as a rule
			q.err = err
		}
	}
}

// A thrown is the value of a panic.
type thrown struct{ value any }

func (t *thrown) Error() string { return fmt.Sprint(t.value) }

// throw makes the answer a panic.
func (q *request) throw(value any) { q.set, q.err = true, &thrown{value} }

func (q *request) panicked() bool {
	_, is := q.err.(*thrown)
	return is
}

// finish hands the answers to the round, and returns the batch that may begin now, if one has waited for this one.
func (b *batch) finish() (next *batch) {
	b.ctx.Cancel(nil)
	s := b.t.s
	s.guard.Lock()
	defer s.guard.Unlock()
	b.returned = true
	if b.called && s.recorded == nil {
		s.stats.Open--
		b.to = s.tracer.now()
	}
	if !b.cancelled {
		for _, q := range b.requests {
			if q.err != nil {
				s.stats.Errors++
			}
			q.state = back
			q.resumeLocked(true)
		}
	}
	b.t.open--
	next = b.t.nextLocked()
	b.overLocked()
	return next
}

// overLocked is the end of a batch, whether it has run or not.
func (b *batch) overLocked() {
	d, s := b.d, b.t.s
	b.round.backLocked()
	if d.batches.Remove(&b.node); d.batches.First() == nil && d.ended {
		d.ender.Resume(struct{}{}, nil)
	}
	if s.open--; s.open == 0 {
		for _, r := range s.closers {
			r.Resume(struct{}{}, nil)
		}
		s.closers = nil
	}
}

// cancelLocked forgets a batch that nobody needs: its results are dropped, and the next Get makes a new request. The caller then
// calls cancelAll, without the guard.
func (b *batch) cancelLocked() {
	b.cancelled = true
	for _, q := range b.requests {
		q.forgetLocked()
	}
	if !b.started {
		b.t.queue = slices.DeleteFunc(b.t.queue, func(other *batch) bool { return other == b })
		b.t.s.stats.Dropped += len(b.requests)
		b.overLocked()
	}
}

// cancelAll cancels the contexts of sources, where the source was called.
func cancelAll(batches []*batch, cause error) {
	for _, b := range batches {
		b.t.s.guard.Lock()
		called := b.called
		b.t.s.guard.Unlock()
		if called {
			b.ctx.Cancel(cause)
		}
	}
}

package fetch

import (
	"context"
	"errors"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// A Batch is one call of a source: keys, and room for their answers. Its methods may be called from any goroutine until load has returned.
type Batch[K comparable, V any] struct {
	batch
	t       *tableOf[K, V]
	keys    []K
	entries []*entry[K, V]

	mu    atomicx.Mutex
	over  bool      // load has returned
	at    int       // where the next answer is looked for first
	index map[K]int // of the keys, made if need be
}

// A batch is the part of a Batch that is the same for all.
type batch struct {
	s     *Session
	ctx   cancelctx.Following // of load; begun with running
	frame frame               // around ctx
	d     *driver
	round *round
	self  interface {
		run()
		finish() (next *batch)
		requests() []*request
		mayStartLocked() bool
		forgetLocked()
	}
	needed    int  // requests that somebody waits for
	started   bool // or about to be
	running   bool
	counted   bool // as open
	cancelled bool
	write     bool
	inline    bool
	sent      *sent  // nil: no trace
	then      *batch // the next one that can begin
	also      *batch // the next one that a waiter is to cancel
}

// A BatchInfo says what batch it is.
type BatchInfo struct {
	Source string
	Keys   int
	Round  int // 0: it is of no round
}

// Keys returns the keys in the order of asking. They are all different, except in an Effect. The slice is read only.
func (b *Batch[K, V]) Keys() []K { return b.keys }

// Set answers a key. It ignores a key that is not in the batch, and every call after load has returned. Of two answers to one key the last counts; the keys of an
// Effect may be equal, and are then answered in order.
func (b *Batch[K, V]) Set(k K, v V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.find(k); ok {
		b.answer(i, v, nil)
	}
}

// Fail answers a key with an error, which is remembered like a value; see Transient. It panics if err is nil.
func (b *Batch[K, V]) Fail(k K, err error) {
	if err == nil {
		panic("fetch: Fail with a nil error")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i, ok := b.find(k); ok {
		b.answer(i, *new(V), err)
	}
}

// find returns the index of k. Sources tend to answer in the order of the keys; one may have sorted the slice that it was given.
func (b *Batch[K, V]) find(k K) (i int, ok bool) {
	if b.over {
		return 0, false
	}
	for b.write && b.at < len(b.entries) && b.entries[b.at].set {
		b.at++ // equal keys are answered in order
	}
	if b.at < len(b.entries) && b.entries[b.at].key == k {
		b.at++
		return b.at - 1, true
	}
	if b.write {
		found := -1
		for i, e := range b.entries {
			if e.key == k {
				if found = i; !e.set {
					break
				}
			}
		}
		return found, found >= 0
	}
	if b.index == nil {
		b.index = make(map[K]int, len(b.entries))
		for i, e := range b.entries {
			b.index[e.key] = i
		}
	}
	if i, ok = b.index[k]; ok {
		b.at = i + 1
	}
	return i, ok
}

func (b *Batch[K, V]) answer(i int, v V, err error) {
	e := b.entries[i]
	e.v, e.err, e.set = v, err, true
}

// begin runs b, elsewhere unless it is to run on the driver's own goroutine.
func (b *batch) begin() {
	if b.inline && b.d.group == nil {
		suspend.Bind(nil, b.runAll)
	} else {
		goroutine(b.runAll)
	}
}

// beginAll begins b and those after it, also if one that is inline ends this goroutine.
func beginAll(b *batch) {
	defer func() {
		if b != nil {
			beginAll(b)
		}
	}()
	for b != nil {
		first := b
		b = b.then
		first.begin()
	}
}

// runAll runs b, and those that had to wait for its end. Its parts are one after another and not in each other: then the stack
// that a goroutine begins with is enough for them.
func (b *batch) runAll() {
	for b != nil {
		b.self.run()
		b = b.self.finish()
	}
}

// run calls the source.
func (b *Batch[K, V]) run() {
	b.ctx.Init(b.s.ctx, watching.Here)
	b.s.guard.Lock()
	b.running = true
	dropped, ended := b.cancelled, b.s.ended
	if !dropped {
		b.s.stats.Batches++
		b.s.stats.Open++
		b.counted = true
		b.s.stats.Keys += len(b.keys)
		b.sent.beginLocked()
	}
	b.s.guard.Unlock()
	if ended {
		b.ctx.Cancel(ErrEnded)
	}
	if !dropped {
		b.frame = frame{Context: &b.ctx.Context, s: b.s, inSource: true}
		b.load(&b.frame)
	}
}

// load calls the source and makes an answer of all that it does.
func (b *Batch[K, V]) load(f *frame) {
	var err error
	returned := false
	defer func() {
		var how outcome.Outcome
		if !returned {
			how = outcome.Recovered(recover())
		}
		if how.Exited() {
			err = ErrAbandoned
			defer goroutine(func() { b.finish().runAll() }) // this one ends
		}
		b.answered(err, how)
	}()
	if b.s.opts.OnBatch == nil {
		err = b.t.load(f, b)
	} else {
		err = b.hooked(f)
	}
	returned = true
}

// hooked calls the source, and OnBatch around it, which is a part of the source.
func (b *Batch[K, V]) hooked(f *frame) error {
	ctx, over := b.s.opts.OnBatch(f, BatchInfo{Source: b.t.name, Keys: len(b.keys), Round: b.round.number})
	err := ErrAbandoned // it panics, or exits
	if over != nil {
		defer func() { over(err) }()
	}
	err = b.t.load(ctx, b)
	return err
}

// answered is the end of load, which has returned err, or panicked.
func (b *Batch[K, V]) answered(err error, how outcome.Outcome) {
	over := b.ctx.Err() != nil
	var cause error
	if over {
		cause = context.Cause(&b.ctx.Context)
	}
	b.conclude(err, cause, how)
	for _, e := range b.entries {
		e.settle(over)
	}
}

// conclude makes an answer for each key. An error of load is the answer to every key that has none of its own, also to one that was set:
// its value, or its absence, may be half of what load would have read. cause is why the context of load has ended, nil if it has not.
func (b *Batch[K, V]) conclude(err, cause error, how outcome.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true // no answer is changed from here on
	failed := err != nil
	switch {
	case cause != nil:
		err = cause
	case err == nil:
		err = ErrNotFound
	}
	for _, e := range b.entries {
		switch {
		case !how.Returned() && !how.Exited():
			e.throw(how.Value())
		case e.panicked:
		case !e.set, failed && (e.err == nil || errors.Is(e.err, ErrNotFound)), cause == ErrEnded && e.err != nil: // that is of its context, as a rule
			e.err = err
		}
	}
}

// settle makes the answer what all get: an error that tells what failed.
func (e *entry[K, V]) settle(over bool) {
	e.passing = e.t.opts.fresh
	if e.err == nil || e.panicked {
		return
	}
	e.v, e.passing = *new(V), e.passing || over || passes(e.err)
	e.err = &Error{Source: e.t.name, Key: e.key, Err: e.err}
}

// finish hands out the answers, or leaves that to the round.
// It returns the batch that may begin now, if one has waited for this one.
func (b *Batch[K, V]) finish() (next *batch) {
	b.ctx.Cancel(nil)
	s := b.s
	s.guard.Lock()
	defer s.guard.Unlock()
	b.sent.endLocked()
	if b.counted {
		s.stats.Open--
	}
	if !b.cancelled {
		for _, e := range b.entries {
			if e.err != nil {
				s.stats.Errors++
			}
			if e.state == open {
				e.state = back
			}
			if e.foreign > 0 {
				e.resumeLocked(true)
			}
		}
	}
	b.t.open--
	next = b.t.nextLocked()
	b.overLocked()
	return next
}

// overLocked is the end of a batch, whether it has run or not.
func (b *batch) overLocked() {
	b.round.backLocked()
	d, s := b.d, b.s
	for i, other := range d.batches {
		if other == b {
			last := len(d.batches) - 1
			d.batches[i], d.batches[last] = d.batches[last], nil
			d.batches = d.batches[:last]
			break
		}
	}
	if len(d.batches) == 0 && d.ended {
		d.ender.Resume(struct{}{}, nil)
	}
	if s.open--; s.open == 0 {
		for _, r := range s.closers {
			r.Resume(struct{}{}, nil)
		}
		s.closers = nil
	}
}

// cancelLocked forgets a batch that nobody needs: its results are dropped, and the next Get makes a new request. The caller owes
// it cancelAll, without the guard.
func (b *batch) cancelLocked() {
	b.cancelled = true
	b.self.forgetLocked()
}

func (b *Batch[K, V]) forgetLocked() {
	for _, e := range b.entries {
		e.request.forgetLocked()
	}
	if !b.started {
		b.t.unqueueLocked(&b.batch)
		b.s.stats.Dropped += len(b.entries)
		b.overLocked()
	}
}

func cancelAll(batches []*batch, cause error) {
	for _, b := range batches {
		b.stop(cause)
	}
}

// stop cancels the context of the source, if the source was called.
func (b *batch) stop(cause error) {
	b.s.guard.Lock()
	running := b.running
	b.s.guard.Unlock()
	if running {
		b.ctx.Cancel(cause)
	}
}

package fetch

import (
	"context"
	"errors"
	"slices"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// This file has the life of a batch. schedule.go decides which requests it has, and when it is sent.

func newBatch(t *table, r *round) *batch {
	b := &batch{t: t, d: r.d, round: r, kept: t.write}
	b.requests = b.one[:0]
	return b
}

// addLocked adds a pending request to b and changes its state to open.
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

// openLocked registers b as open and reports whether b may run now. If not, b waits in the queue of its table.
func (b *batch) openLocked() bool {
	s, t := b.t.s, b.t
	b.node.Value = b
	b.d.batches.Push(&b.node)
	b.round.open++
	s.open++
	if s.tracer != nil {
		s.tracer.sendLocked(b)
	}
	if t.fullLocked() {
		t.queue = append(t.queue, b)
		return false
	}
	t.open++
	b.started = true
	return true
}

// fullLocked reports whether MaxOpen batches of the source are running.
func (t *table) fullLocked() bool { return t.opts.MaxOpen > 0 && t.open == t.opts.MaxOpen }

// nextLocked takes the next batch off the queue and marks it started, or returns nil if the queue is empty.
func (t *table) nextLocked() (next *batch) {
	if len(t.queue) == 0 {
		return nil
	}
	next, t.queue = t.queue[0], t.queue[1:]
	next.started = true
	t.open++
	return next
}

// beginAll starts b and the batches linked after it, even if an Inline batch ends this goroutine.
func (b *batch) beginAll() {
	defer func() {
		if b != nil {
			b.beginAll()
		}
	}()
	for b != nil {
		first := b
		if b = b.then; first.t.opts.Inline && !first.t.opts.Immediate && first.d.group == nil && !preempt.Explored() {
			suspend.Bind(nil, first.runAll)
		} else {
			goroutine(first.runAll)
		}
	}
}

// runAll runs b, and then each batch whose turn comes when its predecessor ends. The loop keeps the stack flat, so that a
// goroutine's initial stack is enough.
func (b *batch) runAll() {
	for b != nil {
		b.callSource()
		next := b.finish()
		if next != nil && next.d != b.d && next.t.opts.Inline && !next.t.opts.Immediate { // its Goexit must not end the caller of another Run
			goroutine(next.runAll)
			return
		}
		b = next
	}
}

// callSource calls the source, unless b has been cancelled.
func (b *batch) callSource() {
	s := b.t.s
	// Step 7.
	b.ctx.Init(s.ctx, watching.Here)
	s.guard.Lock()
	b.called, b.caller = !b.cancelled, gid.Get()
	ended := s.ended
	if b.called && s.recorded == nil {
		s.stats.Batches++
		s.stats.Open++
		s.stats.Keys += len(b.requests)
		if s.tracer != nil {
			b.from = s.tracer.now()
		}
	}
	s.guard.Unlock()
	if ended {
		b.ctx.Cancel(errEnded)
	}
	if b.called {
		b.frame = frame{Context: &b.ctx.Context, s: s, inSource: true}
		b.load()
	}
}

// load calls the source and turns its return, panic or Goexit into answers.
func (b *batch) load() {
	var err error
	returned := false
	defer func() {
		var how outcome.Outcome
		if !returned {
			how = outcome.Recovered(recover())
		}
		if how.Exited() {
			err = errAbandoned
			defer goroutine(func() { b.finish().runAll() }) // this goroutine is exiting
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

// hooked calls the source between OnBatch and the function that OnBatch returns. A panic in either of these functions is
// handled like a panic in the source.
func (b *batch) hooked() error {
	ctx, over := b.t.s.opts.OnBatch(&b.frame, BatchInfo{Source: b.t.name, Keys: len(b.requests), Round: b.round.number})
	err := errAbandoned // the error if the source panics or exits
	if over != nil {
		defer func() { over(err) }()
	}
	err = b.t.call(ctx, b)
	return err
}

// conclude records the end of the call: err is the error that the call returned, and how is its outcome. conclude wraps each
// error in an *Error and marks the answers that the session must not remember.
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

// answer sets the answer to each key:
//   - ErrNotFound: the source returned nil and did not answer this key.
//   - An error that load returns is the answer to every key, except keys that load Failed with an error other than ErrNotFound.
//   - A panic in load is raised in every Get of the batch, even for keys that were Set.
//   - errAbandoned: load called runtime.Goexit.
//   - If the call's context has ended, its cause replaces the returned error and ErrNotFound. The errEnded of a Close replaces every error.
//
// Every error is wrapped in an *Error; a panic is not. cause is context.Cause of the call's context, or nil if the context has not ended.
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
		case !q.set: // err is ErrNotFound if load returned nil
			q.err = err
		case failed && (q.err == nil || errors.Is(q.err, ErrNotFound)): // load may have read only half of the value
			q.err = err
		case cause == errEnded && q.err != nil: // q.err is usually the context's error
			q.err = err
		}
	}
}

// finish passes the answers to the round, and returns the next batch in the source's queue, or nil if the queue is empty.
func (b *batch) finish() (next *batch) {
	b.ctx.Cancel(nil)
	s := b.t.s
	s.guard.Lock()
	defer s.guard.Unlock()
	// Step 8.
	b.returned, b.caller = true, 0
	if b.called && s.recorded == nil {
		s.stats.Open--
		if s.tracer != nil {
			b.to = s.tracer.now()
		}
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

// overLocked does the accounting at the end of a batch, even of a batch that never ran.
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

// cancelLocked cancels a batch without waiters. The results of the batch are dropped, and the next Get of a key makes a new
// request. The caller must call cancelAll after it unlocks the guard.
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

// A Batch is one call of a source: it has the keys and takes their answers. The methods of a Batch may be called from any
// goroutine until the source's function returns.
type Batch[K comparable, V any] struct {
	b     *batch
	keys  []K
	few   [1]K      // the array behind keys in a batch of one key
	at    int       // the first index that find tries
	index map[K]int // maps each key to its index; built on demand
}

// call makes the Batch and calls the source's function with it.
func (t *tableOf[K, V]) call(ctx context.Context, b *batch) error {
	view := &Batch[K, V]{b: b}
	if view.keys = view.few[:]; len(b.requests) > 1 {
		view.keys = make([]K, len(b.requests))
	}
	for i := range view.keys {
		view.keys[i] = view.entry(i).key
	}
	return t.load(ctx, view)
}

// Keys returns the keys in the order of the requests. The keys are distinct, except in an Effect. The caller must not modify
// the slice.
func (b *Batch[K, V]) Keys() []K { return b.keys }

// Set answers a key with a value. A key that is not in the batch is ignored, and so is every call after the source's function
// has returned. A later answer to the same key replaces an earlier answer. Equal keys of an Effect are answered in order.
func (b *Batch[K, V]) Set(k K, v V) {
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	if i, ok := b.find(k); ok {
		b.answer(i, v, nil)
	}
}

// Fail answers a key with an error. The session remembers the error like a value; see Transient for exceptions. Fail panics if
// err is nil.
func (b *Batch[K, V]) Fail(k K, err error) {
	if err == nil {
		panic("fetch: Fail with a nil error")
	}
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	if i, ok := b.find(k); ok {
		b.answer(i, *new(V), err)
	}
}

// find returns the index of k. find first tries the key after the last answer, because most sources answer in order. find reads
// the requests and not b.keys, which the source may have sorted.
func (b *Batch[K, V]) find(k K) (i int, ok bool) {
	if b.b.over {
		return 0, false
	}
	for b.b.t.write && b.at < len(b.keys) && b.entry(b.at).set {
		b.at++ // equal keys are answered in order
	}
	if b.at < len(b.keys) && b.entry(b.at).key == k {
		b.at++
		return b.at - 1, true
	}
	if b.b.t.write {
		found := -1
		for i := range b.keys {
			if e := b.entry(i); e.key == k {
				if found = i; !e.set {
					break
				}
			}
		}
		return found, found >= 0
	}
	if b.index == nil {
		b.index = make(map[K]int, len(b.keys))
		for i := range b.keys {
			b.index[b.entry(i).key] = i
		}
	}
	if i, ok = b.index[k]; ok {
		b.at = i + 1
	}
	return i, ok
}

// entry returns the i'th request.
func (b *Batch[K, V]) entry(i int) *entry[K, V] { return b.b.requests[i].self.(*entry[K, V]) }

func (b *Batch[K, V]) answer(i int, v V, err error) {
	e := b.entry(i)
	e.v, e.err, e.set = v, err, true
}

package fetch

import (
	"context"
	"errors"
	"slices"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

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
		if b = b.then; first.t.opts.Mode == Inline && first.d.group == nil && !preempt.Explored() {
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
		next := b.finish()
		if next != nil && next.d != b.d && next.t.opts.Mode == Inline { // its Goexit is not to end the caller of another Run
			goroutine(next.runAll)
			return
		}
		b = next
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

// answer makes an answer for each key. An error of the source is the answer to every key that was not Failed, even if the key was
// Set: the value, or its absence, may be half of what the source would have read. cause is why the context of the call has ended, nil if
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

// finish hands the answers to the round, and returns the batch that may begin now, if a batch waits for its turn.
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

// A Batch is one call of a source: keys, and room for their answers. Its methods may be called from any goroutine until load has returned.
type Batch[K comparable, V any] struct {
	b     *batch
	keys  []K
	few   [1]K      // room for them
	at    int       // where the next answer is looked for first
	index map[K]int // the position of each key; made on demand
}

// call calls the source.
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

// Keys returns the keys in the order of asking. They are all different, except in an Effect. The slice is read only.
func (b *Batch[K, V]) Keys() []K { return b.keys }

// Set answers a key. It ignores a key that is not in the batch, and every call after load has returned. Of two answers to one key the last counts; the keys of an
// Effect may be equal, and are then answered in order.
func (b *Batch[K, V]) Set(k K, v V) {
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	if i, ok := b.find(k); ok {
		b.answer(i, v, nil)
	}
}

// Fail answers a key with an error, which is remembered like a value; see Transient. It panics if err is nil.
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

// find returns the index of k. Sources tend to answer in the order of the keys; one may have sorted the slice that it was given.
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

// entry is the i'th request. The source may have sorted the slice of keys.
func (b *Batch[K, V]) entry(i int) *entry[K, V] { return b.b.requests[i].self.(*entry[K, V]) }

func (b *Batch[K, V]) answer(i int, v V, err error) {
	e := b.entry(i)
	e.v, e.err, e.set = v, err, true
}

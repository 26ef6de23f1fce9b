package fetch

import (
	"context"
	"errors"

	"github.com/braidgo/braid/suspend"
)

// Get returns the value of a key. If the session does not have it yet, Get suspends its caller until the source has answered, and
// the request goes out with all others of its round.
//
// Every Get of a key in a session returns the same value, or the same error, an *Error. A panic of the source is raised in each of
// them. If ctx is done first, or already, Get returns the error of the cancellation; a request that nobody waits for any more is
// not sent, and a batch that nobody waits for any more is cancelled. Get returns ErrNoSession if ctx has no session, ErrEnded if the
// session has ended, and ErrInSource if ctx is the context of a source.
func (src *Source[K, V]) Get(ctx context.Context, k K) (V, error) {
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		var none V
		return none, err
	}
	check(src.keys, k)
	t, e := src.answered(f.s, k, f.crowd)
	if e == nil {
		var err error
		if e, err = t.ask(ctx, f, k); err != nil {
			return *new(V), err
		}
	}
	if f.trail != nil {
		f.trail.got(e.asked)
	}
	return e.result()
}

// answered returns the table of src in s, and the answer to k if it is there.
func (src *Source[K, V]) answered(s *Session, k K, crowd int) (*tableOf[K, V], *entry[K, V]) {
	s.guard.Lock()
	t := lookLocked[K, V](s, src)
	if t != nil {
		if e := t.m[k]; e != nil && e.state == done && !s.ended {
			s.stats.Gets++
			s.stats.Shared++
			s.guard.Unlock()
			return t, e
		}
	}
	s.guard.Unlock()
	if t == nil {
		t = src.in(s, crowd)
	}
	return t, nil
}

// check is what every operation asks first.
func (f *frame) check(ctx context.Context) error {
	switch {
	case f == nil || f.s == nil:
		if f != nil && f.inSource {
			return ErrInSource // of a Shared source
		}
		return ErrNoSession
	case f.inSource:
		return ErrInSource
	case ctx.Err() != nil:
		return suspend.Err(ctx)
	}
	return nil
}

// A get is one Get that found no answer.
type get[K comparable, V any] struct {
	waiter
	t *tableOf[K, V]
	k K
}

func entryOf[K comparable, V any](l *link) *entry[K, V] { return l.q.keyed.(*entry[K, V]) }

// ask is a Get that found no answer. It waits in its own frame, not by wait: a task that waits is cold, and each frame is a line or
// two of the processor's cache.
func (t *tableOf[K, V]) ask(ctx context.Context, f *frame, k K) (*entry[K, V], error) {
	if t.s.recorded != nil {
		return t.replay(k)
	}
	g := new(get[K, V])
	g.t, g.k = t, k
	g.begin(ctx, f, t.s)
	if f.trail != nil {
		g.mark = f.mark(2)
	}
	if t.opts.immediate && t.opts.inline {
		if e := t.once(g.d, k, g.mark, 1); e != nil {
			return e, nil
		}
	}
	defer g.pay()
	if _, err := suspend.Wait[struct{}](g.ctx, g, false); err != nil {
		return nil, err
	}
	return entryOf[K, V](&g.one), nil
}

// Try is part of a suspend.Source.
func (g *get[K, V]) Try() (none struct{}, ok bool, err error) {
	s := g.t.s
	if s.ended {
		return none, true, ErrEnded
	}
	if !g.t.seenLocked(&g.waiter, &g.one, g.k) {
		return none, false, nil
	}
	s.stats.Gets++
	s.stats.Shared++
	return none, true, nil
}

// seenLocked looks for a request of k, for l, and reports whether w gets its answer.
func (t *tableOf[K, V]) seenLocked(w *waiter, l *link, k K) bool {
	if l.q != nil && l.q.state == done {
		return true // it is of once
	}
	e := t.m[k]
	if e == nil {
		l.q = nil
		return false
	}
	l.q = &e.request
	return e.visible(w.d)
}

// visible reports whether tasks of d get the answer.
func (q *request) visible(d *driver) bool { return q.state == done || q.state == back && q.d != d }

// Enqueue is part of a suspend.Source.
func (g *get[K, V]) Enqueue(r suspend.Resumer[struct{}]) {
	g.comesLocked(r)
	g.t.askLocked(&g.waiter, &g.one, g.k)
}

// askLocked adds w to the waiters of l.q, which is the request of k. It makes that if l has none.
func (t *tableOf[K, V]) askLocked(w *waiter, l *link, k K) {
	t.s.stats.Gets++
	if l.q == nil {
		e := t.newLocked(k)
		e.d = w.d
		t.enterLocked(w, l, e)
	} else {
		t.s.stats.Shared++
		w.joinLocked(l, l.q)
	}
	l.q.markLocked(w.mark)
}

// enterLocked adds w to the waiters of a new request.
func (t *tableOf[K, V]) enterLocked(w *waiter, l *link, e *entry[K, V]) {
	if t.opts.immediate {
		t.aloneLocked(w.d, e)
	} else {
		w.d.addLocked(&e.request)
	}
	w.joinLocked(l, &e.request)
}

// aloneLocked sends a request at once.
func (t *tableOf[K, V]) aloneLocked(d *driver, e *entry[K, V]) {
	if b := t.immediateLocked(d, e); b.started {
		goroutine(b.runAll)
	}
}

// immediateLocked makes a batch of one request, which the caller begins if it has started.
func (t *tableOf[K, V]) immediateLocked(d *driver, e *entry[K, V]) *Batch[K, V] {
	b := t.batchOf([]*entry[K, V]{e})
	e.d, e.state = d, open
	b.d, b.round = d, &round{d: d, requests: []*request{&e.request}, open: 1}
	d.batches = append(d.batches, &b.batch)
	t.s.tracer.sendLocked(&b.batch, t.name)
	t.s.open++
	b.mayStartLocked()
	return b
}

// Find is Get for keys that may not be there: instead of ErrNotFound it returns false.
func (src *Source[K, V]) Find(ctx context.Context, k K) (v V, ok bool, err error) {
	switch v, err = src.Get(ctx, k); {
	case err == nil:
		return v, true, nil
	case errors.Is(err, ErrNotFound):
		return v, false, nil
	}
	return v, false, err
}

// All returns the values of several keys, in their order, or the error of the first key in order that fails, as Get would. It
// suspends its caller once, and starts no tasks.
func (src *Source[K, V]) All(ctx context.Context, ks []K) ([]V, error) {
	vs := make([]V, len(ks))
	err := src.every(ctx, ks, func(i int, v V, err error) error { vs[i] = v; return err })
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// AllSettled is All with an error for each key: errs[i] is nil, or what a Get of ks[i] would return. It returns a nil slice of errors if
// no key has failed. If ctx is done first, or already, the error of the cancellation is that of each key.
func (src *Source[K, V]) AllSettled(ctx context.Context, ks []K) (vs []V, errs []error) {
	vs = make([]V, len(ks))
	fail := func(i int, err error) {
		if errs == nil {
			errs = make([]error, len(ks))
		}
		errs[i] = err
	}
	err := src.every(ctx, ks, func(i int, v V, err error) error {
		if vs[i] = v; err != nil {
			fail(i, err)
		}
		return nil
	})
	if err != nil {
		for i := range ks {
			fail(i, err)
		}
	}
	return vs, errs
}

// every waits for all keys, and then calls got for each of them, until that returns an error.
func (src *Source[K, V]) every(ctx context.Context, ks []K, got func(i int, v V, err error) error) error {
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		return err
	}
	for _, k := range ks {
		check(src.keys, k)
	}
	s := f.s
	t := src.in(s, max(f.crowd, len(ks)))
	if s.recorded != nil {
		return t.replayAll(ks, got)
	}
	g := &all[K, V]{t: t, ks: ks, links: make([]link, len(ks))}
	g.begin(ctx, f, s)
	g.waiter.links = &g.links
	if f.trail != nil {
		g.mark = f.mark(2)
	}
	if t.opts.immediate && t.opts.inline {
		for i, k := range ks {
			if e := t.once(g.d, k, g.mark, 1); e != nil {
				g.links[i].q = &e.request
				g.own++
			}
		}
	}
	if err := wait(&g.waiter, g); err != nil {
		return err
	}
	for i := range ks {
		e := entryOf[K, V](&g.links[i])
		if f.trail != nil {
			f.trail.got(e.asked)
		}
		v, err := e.result()
		if err := got(i, v, err); err != nil {
			return err
		}
	}
	return nil
}

// An all is one All.
type all[K comparable, V any] struct {
	waiter
	t     *tableOf[K, V]
	ks    []K
	links []link
	own   int // of these, those that once has counted
}

// Try is part of a suspend.Source.
func (g *all[K, V]) Try() (none struct{}, ok bool, err error) {
	s := g.t.s
	if s.ended {
		return none, true, ErrEnded
	}
	for i, k := range g.ks {
		if !g.t.seenLocked(&g.waiter, &g.links[i], k) {
			return none, false, nil
		}
	}
	s.stats.Gets += len(g.ks) - g.own
	s.stats.Shared += len(g.ks) - g.own
	return none, true, nil
}

// Enqueue is part of a suspend.Source.
func (g *all[K, V]) Enqueue(r suspend.Resumer[struct{}]) {
	g.comesLocked(r)
	g.t.s.stats.Gets -= g.own
	g.t.s.stats.Shared -= g.own
	for i, k := range g.ks {
		if l := &g.links[i]; g.t.seenLocked(&g.waiter, l, k) { // it may be a key again
			g.t.s.stats.Gets++
			g.t.s.stats.Shared++
		} else {
			g.t.askLocked(&g.waiter, l, k)
		}
	}
}

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
	hashable(k)
	s := f.s
	s.guard.Lock()
	if t, ok := s.tables[src].(*tableOf[K, V]); ok {
		if e := t.m[k]; e != nil && e.state == done && !s.ended {
			s.stats.Gets++
			s.stats.Shared++
			s.guard.Unlock()
			if f.trail != nil {
				f.trail.got(e.asked)
			}
			return e.result()
		}
	}
	s.guard.Unlock()
	return src.in(s).get(ctx, f, k)
}

// check is what every operation asks first.
func (f *frame) check(ctx context.Context) error {
	switch {
	case f == nil || f.s == nil:
		return ErrNoSession
	case f.inSource:
		return ErrInSource
	case ctx.Err() != nil:
		return suspend.Err(ctx)
	}
	return nil
}

// hashable panics if k is not, before there is a lock to be held.
func hashable[K comparable](k K) {
	var none map[K]struct{}
	_ = none[k]
}

// A get is one Get that found no answer.
type get[K comparable, V any] struct {
	waiter
	t *tableOf[K, V]
	k K
	e *entry[K, V]
}

func (t *tableOf[K, V]) get(ctx context.Context, f *frame, k K) (v V, err error) {
	if t.s.recorded != nil {
		return t.replay(k)
	}
	g := &get[K, V]{t: t, k: k, waiter: waiter{s: t.s, d: t.s.driverHere(f), ctx: ctx}}
	if f.trail != nil {
		g.mark = f.mark()
	}
	if t.opts.immediate && t.opts.inline {
		t.once(g.d, k, g.mark)
	}
	if err := wait(&g.waiter, g); err != nil {
		return v, err
	}
	if f.trail != nil {
		f.trail.got(g.e.asked)
	}
	return g.e.result()
}

// Try is part of a suspend.Source.
func (g *get[K, V]) Try() (none struct{}, ok bool, err error) {
	if g.s.ended {
		return none, true, ErrEnded
	}
	if g.e = g.t.m[g.k]; g.e == nil || !g.e.visible(g.d) {
		return none, false, nil
	}
	g.s.stats.Gets++
	g.s.stats.Shared++
	return none, true, nil
}

// visible reports whether tasks of d get the answer.
func (q *request) visible(d *driver) bool { return q.state == done || q.state == back && q.d != d }

// Enqueue is part of a suspend.Source.
func (g *get[K, V]) Enqueue(r suspend.Resumer[struct{}]) {
	g.r = r
	g.t.askLocked(&g.waiter, &g.one, g.k, &g.e)
}

// askLocked adds w to the waiters of k, and makes the request if there is none.
func (t *tableOf[K, V]) askLocked(w *waiter, l *link, k K, at **entry[K, V]) {
	e := *at
	t.s.stats.Gets++
	fresh := e == nil
	if fresh {
		e = t.newLocked(k)
		e.d = w.d
	} else {
		t.s.stats.Shared++
	}
	*at = e
	if fresh {
		t.enterLocked(w, l, e)
	} else {
		w.joinLocked(l, &e.request)
	}
	e.markLocked(w.mark)
}

// enterLocked adds w to the waiters of a new request.
func (t *tableOf[K, V]) enterLocked(w *waiter, l *link, e *entry[K, V]) {
	if t.opts.immediate {
		t.immediateLocked(w.d, e)
	} else {
		w.d.addLocked(&e.request)
	}
	w.joinLocked(l, &e.request)
}

// immediateLocked sends a request at once.
func (t *tableOf[K, V]) immediateLocked(d *driver, e *entry[K, V]) *Batch[K, V] {
	b := t.batchOf([]*entry[K, V]{e})
	e.d, e.state = d, open
	b.d, b.round = d, &round{d: d, requests: []*request{&e.request}, open: 1}
	d.batches = append(d.batches, &b.batch)
	t.s.tracer.sendLocked(&b.batch, t.name)
	t.s.open++
	if b.mayStartLocked() && !t.opts.inline {
		b.begin()
	}
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
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		return nil, err
	}
	for _, k := range ks {
		hashable(k)
	}
	s := f.s
	t := src.in(s)
	g := &all[K, V]{t: t, ks: ks, es: make([]*entry[K, V], len(ks)), waiter: waiter{s: s}}
	if s.recorded == nil {
		g.d, g.ctx = s.driverHere(f), ctx
		if f.trail != nil {
			g.mark = f.mark()
		}
		if t.opts.immediate && t.opts.inline {
			for _, k := range ks {
				t.once(g.d, k, g.mark)
			}
		}
		if err := wait(&g.waiter, g); err != nil {
			return nil, err
		}
	}
	vs := make([]V, len(ks))
	var err error
	for i := range vs {
		if s.recorded != nil {
			vs[i], err = t.replay(ks[i])
		} else {
			if f.trail != nil {
				f.trail.got(g.es[i].asked)
			}
			vs[i], err = g.es[i].result()
		}
		if err != nil {
			return nil, err
		}
	}
	return vs, nil
}

// An all is one All.
type all[K comparable, V any] struct {
	waiter
	t  *tableOf[K, V]
	ks []K
	es []*entry[K, V]
}

// Try is part of a suspend.Source.
func (g *all[K, V]) Try() (none struct{}, ok bool, err error) {
	if g.s.ended {
		return none, true, ErrEnded
	}
	ok = true
	for i, k := range g.ks {
		g.es[i] = g.t.m[k]
		ok = ok && g.es[i] != nil && g.es[i].visible(g.d)
	}
	if ok {
		g.s.stats.Gets += len(g.ks)
		g.s.stats.Shared += len(g.ks)
	}
	return none, ok, nil
}

// Enqueue is part of a suspend.Source.
func (g *all[K, V]) Enqueue(r suspend.Resumer[struct{}]) {
	g.r = r
	g.links = make([]link, len(g.ks))
	for i, k := range g.ks {
		if g.es[i] == nil {
			g.es[i] = g.t.m[k] // the same key twice
		}
		if e := g.es[i]; e != nil && e.visible(g.d) {
			g.s.stats.Gets++
			g.s.stats.Shared++
		} else {
			g.t.askLocked(&g.waiter, &g.links[i], k, &g.es[i])
		}
	}
}

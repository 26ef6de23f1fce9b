package fetch

import (
	"context"
	"errors"
	"slices"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// Get returns the value of a key. If the session does not have the value yet, Get suspends its caller until the source has
// answered. The request is sent together with all other requests of its round.
//
// Every Get of a key in a session returns the same value or the same error, which is an *Error. A panic in the source is raised
// in every Get of its keys. If ctx is already done, or is done before the answer arrives, Get returns the error of the
// cancellation. A request without waiters is not sent, and a batch without waiters is cancelled. Get returns ErrNoSession if
// ctx has no session, an error that is suspend.ErrEnded if the session has ended, and ErrInSource if ctx is the context of a source.
func (src *Source[K, V]) Get(ctx context.Context, k K) (V, error) {
	f := frameOf(ctx)
	// Step 1 of a round, see schedule.go.
	if err := f.check(ctx); err != nil {
		return *new(V), err
	}
	checkKey(k)
	t, e := src.answered(f.s, k, f.askers)
	if e == nil {
		// Step 2.
		c := &call[K, V]{t: t, one: [1]K{k}}
		c.keys, c.waiter.links = c.one[:], c.link[:]
		if err := c.wait(ctx, f); err != nil {
			return *new(V), err
		}
		e = c.entry(0)
	}
	if f.trail != nil {
		f.trail.got(&e.request)
	}
	return e.result()
}

// Find is like Get, but returns false instead of ErrNotFound if the source has no value for the key.
func (src *Source[K, V]) Find(ctx context.Context, k K) (v V, ok bool, err error) {
	switch v, err = src.Get(ctx, k); {
	case err == nil:
		return v, true, nil
	case errors.Is(err, ErrNotFound):
		return v, false, nil
	}
	return v, false, err
}

// All returns the values of several keys in the order of ks, or the error that Get would return for the first key in order that
// fails. All suspends its caller once and starts no tasks.
func (src *Source[K, V]) All(ctx context.Context, ks []K) ([]V, error) {
	vs := make([]V, len(ks))
	err := src.every(ctx, ks, func(i int, v V, err error) error { vs[i] = v; return err })
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// AllSettled is like All, but returns an error for each key: errs[i] is the error that a Get of ks[i] would return, or nil.
// errs itself is nil if no key failed. If ctx is already done, or is done before the answers arrive, every key fails with the
// error of the cancellation.
func (src *Source[K, V]) AllSettled(ctx context.Context, ks []K) (vs []V, errs []error) {
	vs, errs = make([]V, len(ks)), make([]error, len(ks))
	err := src.every(ctx, ks, func(i int, v V, err error) error { vs[i], errs[i] = v, err; return nil })
	if err != nil {
		return vs, slices.Repeat([]error{err}, len(ks))
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		errs = nil
	}
	return vs, errs
}

// every waits for all keys and then calls the function got for each key in order. If a call returns an error, every returns
// this error and makes no more calls.
func (src *Source[K, V]) every(ctx context.Context, ks []K, got func(i int, v V, err error) error) error {
	f := frameOf(ctx)
	if err := f.check(ctx); err != nil {
		return err
	}
	for _, k := range ks {
		checkKey(k)
	}
	c := &call[K, V]{t: src.in(f.s, max(f.askers, len(ks))), keys: ks}
	c.waiter.links = make([]link, len(ks))
	if err := c.wait(ctx, f); err != nil {
		return err
	}
	for i := range ks {
		e := c.entry(i)
		if f.trail != nil {
			f.trail.got(&e.request)
		}
		v, err := e.result()
		if err := got(i, v, err); err != nil {
			return err
		}
	}
	return nil
}

// answered returns the table of src in s, and the entry of k, which is nil if s does not have the answer.
func (src *Source[K, V]) answered(s *Session, k K, askers int) (*tableOf[K, V], *entry[K, V]) {
	s.guard.Lock()
	t := lookLocked(s, src)
	if t != nil {
		if e := t.m[k]; e != nil && e.state == done && !s.ended {
			s.stats.Gets++
			s.guard.Unlock()
			return t, e
		}
	}
	s.guard.Unlock()
	if t == nil {
		t = src.in(s, askers)
	}
	return t, nil
}

// A call is a Get or an All that has to wait. A call is also the suspend.Source of the wait.
type call[K comparable, V any] struct {
	waiter
	t      *tableOf[K, V]
	keys   []K
	direct int // number of keys for which the caller itself has called the source
	one    [1]K
	link   [1]link
}

// wait suspends the caller until all keys have answers. wait calls suspend.Wait directly, because each stack frame of a
// suspended task costs a cache line or two.
func (c *call[K, V]) wait(ctx context.Context, f *frame) error {
	c.init(ctx, f)
	if c.t.opts.Immediate && c.t.opts.Inline {
		for i, k := range c.keys {
			if e := c.t.direct(c.d, k, c.mark); e != nil {
				c.links[i].q = &e.request
				c.direct++
			}
		}
	}
	defer c.pay()
	_, err := suspend.Wait[struct{}](c.ctx, c)
	return err
}

// init initialises w as a waiter for the calling task. f is the frame of ctx.
func (w *waiter) init(ctx context.Context, f *frame) {
	w.d, w.ctx = f.s.driverHere(f), ctx
	if ctx == context.Context(f) {
		w.ctx = f.Context
	}
	if c, ok := w.ctx.(*cancelctx.Context); ok {
		w.prompt = c.DoneIfMade() == nil
	} else {
		w.prompt = w.ctx.Done() == nil
	}
	if f.trail != nil {
		w.mark = f.mark()
	}
}

// driverHere returns the driver of the calling goroutine. The driver of f is only a hint, since a context may be used
// on another goroutine.
func (s *Session) driverHere(f *frame) *driver {
	on := suspend.Here()
	if f.d != nil && f.d.on == on {
		return f.d
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	for n := s.drivers.First(); n != nil; n = n.Next() {
		if n.Value.on == on {
			return n.Value
		}
	}
	return &s.settled
}

func (c *call[K, V]) Guard() *suspend.Guard { return &c.t.s.guard }

func (c *call[K, V]) Try() (none struct{}, ok bool, err error) {
	if c.t.s.ended {
		return none, true, errEnded
	}
	for i := range c.keys {
		if !c.seenLocked(i) {
			return none, false, nil
		}
	}
	c.t.s.stats.Gets += len(c.keys) - c.direct
	return none, true, nil
}

func (c *call[K, V]) Enqueue(r suspend.Resumer[struct{}]) {
	c.r = r
	c.t.s.stats.Gets += len(c.keys) - c.direct
	for i, k := range c.keys {
		if c.seenLocked(i) {
			continue
		}
		l := &c.links[i]
		if l.q == nil {
			l.q = &c.t.newLocked(k).request
			c.t.s.made++
		}
		c.joinLocked(l, l.q)
	}
}

// Remove removes the waiter of a cancelled wait.
func (c *call[K, V]) Remove(suspend.Resumer[struct{}]) { c.leaveLocked() }

// seenLocked finds the request of the i'th key, and reports whether the caller can use its answer now.
func (c *call[K, V]) seenLocked(i int) bool {
	l := &c.links[i]
	if l.q != nil && l.q.state == done {
		return true // the table may already have forgotten the request of a direct call
	}
	e := c.t.m[c.keys[i]]
	if e == nil {
		l.q = nil
		return false
	}
	l.q = &e.request
	return e.state == done || e.state == back && e.d != c.d
}

func (c *call[K, V]) entry(i int) *entry[K, V] { return c.links[i].q.self.(*entry[K, V]) }

// result returns the value or the error of the answer, or raises its panic.
func (e *entry[K, V]) result() (V, error) {
	if e.err == nil {
		return e.v, nil
	}
	if thrown, is := e.err.(*thrown); is {
		panic(thrown.value)
	}
	return *new(V), e.err
}

// A tableOf is a table with the types of its keys and values.
type tableOf[K comparable, V any] struct {
	table
	load func(ctx context.Context, b *Batch[K, V]) error
	m    map[K]*entry[K, V] // requests and remembered answers by key; nil for an Effect
	made []entry[K, V]      // preallocated entries for later requests
}

// in returns the table of src in s, and makes the table if s has none. room is a size hint for a new table.
func (src *Source[K, V]) in(s *Session, room int) *tableOf[K, V] {
	s.guard.Lock()
	t := lookLocked(s, src)
	taken := t == nil && slices.ContainsFunc(s.tables, func(t *table) bool { return t.name == src.name }) // a Recording needs unique names
	if t == nil && !taken {
		t = &tableOf[K, V]{table: table{s: s, of: src, name: src.name, opts: src.opts, write: src.write}, load: src.load}
		t.typed = t
		t.override()
		if !src.write {
			t.m = make(map[K]*entry[K, V], min(room, 1<<10))
		}
		if s.tables = append(s.tables, &t.table); len(s.tables) > fewTables {
			if s.more == nil {
				s.more = map[any]*table{}
			}
			s.more[src] = &t.table
		}
	}
	s.guard.Unlock()
	if taken {
		panic("fetch: two sources with the same name in a session: " + src.name)
	}
	return t
}

// override replaces the source's function if the session has an Override for the source or replays a Recording.
func (t *tableOf[K, V]) override() {
	for _, o := range t.s.opts.Use {
		if o.of == t.of {
			t.load = o.load.(func(context.Context, *Batch[K, V]) error)
		}
	}
	if t.s.recorded != nil {
		t.load, t.opts = replay[K, V](t.s.recorded[t.name], t.write), SourceOptions{Immediate: true, Inline: true}
	}
}

// fewTables is the number of tables up to which a linear search is faster than a map.
const fewTables = 8

// lookLocked returns the table of src, or nil if there is none yet.
func lookLocked[K comparable, V any](s *Session, src *Source[K, V]) *tableOf[K, V] {
	for _, t := range s.tables[:min(len(s.tables), fewTables)] {
		if t.of == any(src) {
			return t.typed.(*tableOf[K, V])
		}
	}
	if t := s.more[src]; t != nil {
		return t.typed.(*tableOf[K, V])
	}
	return nil
}

// newLocked makes a request without waiters. newLocked allocates entries in blocks of up to 16, because most entries live until
// the session ends.
func (t *tableOf[K, V]) newLocked(k K) *entry[K, V] {
	if len(t.made) == 0 {
		t.made = make([]entry[K, V], max(1, min(len(t.m), 16)))
	}
	e := &t.made[0]
	t.made = t.made[1:]
	e.t, e.key, e.self = &t.table, k, e
	if !t.write {
		t.m[k] = e
	}
	return e
}

// direct calls an Immediate and Inline source on the caller's goroutine and returns the answer, which the session might not remember.
// direct returns nil if the session has ended, if k already has a request, or if MaxOpen batches are running.
func (t *tableOf[K, V]) direct(d *driver, k K, m *mark) *entry[K, V] {
	s := t.s
	s.guard.Lock()
	if s.ended || t.m[k] != nil || t.fullLocked() {
		s.guard.Unlock()
		return nil
	}
	s.stats.Gets++
	s.made++
	e := t.newLocked(k)
	e.d = d
	if m != nil {
		e.markLocked(m)
	}
	b := aloneLocked(&e.request)
	b.kept = true // only the end of the session cancels the caller's own batch
	s.guard.Unlock()
	b.callSource()
	if next := b.finish(); next != nil { // next belongs to another Get and must not delay this Get or end its task
		goroutine(next.runAll)
	}
	return e
}

func (t *tableOf[K, V]) forgetLocked(q *request) {
	if k := q.self.(*entry[K, V]).key; t.m[k] == q.self {
		delete(t.m, k)
	}
}

func (t *tableOf[K, V]) pair(q *request) (key, value any) {
	e := q.self.(*entry[K, V])
	return e.key, e.v
}

func (t *tableOf[K, V]) rememberedLocked() []*request {
	qs := slices.Clone(t.did)
	for _, e := range t.m {
		qs = append(qs, &e.request)
	}
	return qs
}

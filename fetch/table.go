package fetch

import (
	"context"
	"slices"
)

// A tableOf has a session's requests to one source, and their answers.
type tableOf[K comparable, V any] struct {
	s        *Session
	name     string
	load     func(ctx context.Context, b *Batch[K, V]) error
	opts     options
	write    bool               // of an effect: nothing is shared, and m is empty
	m        map[K]*entry[K, V] // of the sessions's guard, like all that follows
	gathered []*entry[K, V]     // for the batches that are about to be made
	open     int                // batches that run
	queue    []*batch           // that may not yet
	did      []*entry[K, V]     // effects, in the order of their being sent
	times    map[K]int          // how often an effect was done, in a replay
}

// A table is a tableOf.
type table interface {
	label() string
	removeLocked(q *request)
	gatherLocked(q *request) (first bool)
	cutLocked() []*batch
	nextLocked() *batch
	recordLocked() func() ([]Answer, error)
}

// An entry is a request and its answer, which its batch writes while the request is open, and which does not change afterwards.
type entry[K comparable, V any] struct {
	request
	key      K
	v        V
	err      error
	thrown   any // the value of a panic of the source
	panicked bool
	set      bool // by the source
	passing  bool // it is not to be remembered
}

func (e *entry[K, V]) failed() bool { return e.err != nil || e.panicked }

// result is what every Get returns.
func (e *entry[K, V]) result() (V, error) {
	if e.panicked {
		panic(e.thrown)
	}
	return e.v, e.err
}

// in returns the table of src in s.
func (src *Source[K, V]) in(s *Session) *tableOf[K, V] {
	return tableIn(s, src, src.name, func() *tableOf[K, V] {
		t := &tableOf[K, V]{s: s, name: src.name, load: src.load, opts: src.opts, m: map[K]*entry[K, V]{}}
		for _, o := range s.opts.Use {
			if o.of == any(src) {
				t.load = o.load.(func(context.Context, *Batch[K, V]) error)
			}
		}
		return t
	})
}

// tableIn finds the table of src, or makes it, which must be the only one of its name: a recording would mix two.
func tableIn[K comparable, V any](s *Session, src any, name string, create func() *tableOf[K, V]) *tableOf[K, V] {
	s.guard.Lock()
	t, ok := s.tables[src].(*tableOf[K, V])
	taken := !ok && s.named(name)
	if !ok && !taken {
		t = create()
		if s.tables == nil {
			s.tables = map[any]table{}
		}
		s.tables[src] = t
		s.order = append(s.order, t)
	}
	s.guard.Unlock()
	if taken {
		panic("fetch: two sources of one name in a session: " + name)
	}
	return t
}

func (s *Session) named(name string) bool {
	return slices.ContainsFunc(s.order, func(t table) bool { return t.label() == name })
}

// newLocked makes a request, which nobody waits for yet.
func (t *tableOf[K, V]) newLocked(k K) *entry[K, V] {
	e := &entry[K, V]{key: k}
	e.table, e.entry, e.write = t, e, t.write
	if !t.write {
		t.m[k] = e
	}
	return e
}

func (t *tableOf[K, V]) label() string { return t.name }

func (t *tableOf[K, V]) removeLocked(q *request) {
	if e := q.entry.(*entry[K, V]); t.m[e.key] == e {
		delete(t.m, e.key)
	}
}

// doneLocked is the end of a request that is back.
func (q *request) doneLocked() {
	q.state = done
	if q.entry.(interface{ fleeting() bool }).fleeting() {
		q.table.removeLocked(q)
	}
}

func (e *entry[K, V]) fleeting() bool { return e.passing }

// gatherLocked notes a request for the batches to be made, and reports whether it is the first.
func (t *tableOf[K, V]) gatherLocked(q *request) (first bool) {
	t.gathered = append(t.gathered, q.entry.(*entry[K, V]))
	return len(t.gathered) == 1
}

// cutLocked makes batches of the gathered requests.
func (t *tableOf[K, V]) cutLocked() (batches []*batch) {
	size := len(t.gathered)
	if t.opts.maxBatch > 0 {
		size = t.opts.maxBatch
	}
	for entries := range slices.Chunk(t.gathered, size) {
		batches = append(batches, &t.batchOf(entries).batch)
	}
	t.gathered = nil
	return batches
}

func (t *tableOf[K, V]) batchOf(entries []*entry[K, V]) *Batch[K, V] {
	b := &Batch[K, V]{t: t, entries: entries, keys: make([]K, len(entries))}
	if t.write {
		t.did = append(t.did, entries...)
	}
	b.s, b.self, b.inline, b.write = t.s, b, t.opts.inline, t.write
	for i, e := range entries {
		b.keys[i] = e.key
		e.b = &b.batch
		if e.needed > 0 {
			b.needed++
		}
	}
	return b
}

// requests are those of the batch.
func (b *Batch[K, V]) requests() []*request {
	qs := make([]*request, len(b.entries))
	for i, e := range b.entries {
		qs[i] = &e.request
	}
	return qs
}

// mayStartLocked reports whether b may run now; otherwise it waits for its turn.
func (b *Batch[K, V]) mayStartLocked() bool {
	t := b.t
	if t.opts.maxOpen > 0 && t.open == t.opts.maxOpen {
		t.queue = append(t.queue, &b.batch)
		return false
	}
	t.open++
	b.started = true
	return true
}

// nextLocked returns the batch whose turn it is.
func (t *tableOf[K, V]) nextLocked() (next *batch) {
	if len(t.queue) == 0 {
		return nil
	}
	next, t.queue = t.queue[0], t.queue[1:]
	next.started = true
	t.open++
	return next
}

func (t *tableOf[K, V]) unqueueLocked(b *batch) {
	t.queue = slices.DeleteFunc(t.queue, func(q *batch) bool { return q == b })
}

func (e *entry[K, V]) end(err error) { e.err = err }

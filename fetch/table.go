package fetch

import (
	"context"
	"fmt"
	"slices"
)

// A tableOf has a session's requests to one source, and their answers.
type tableOf[K comparable, V any] struct {
	s        *Session
	of       any // the *Source or *Effect
	name     string
	load     func(ctx context.Context, b *Batch[K, V]) error
	opts     options
	write    bool               // of an effect: nothing is shared, and m is empty
	m        map[K]*entry[K, V] // of the session's guard, like all that follows
	made     []entry[K, V]      // for requests to come
	gathered []*entry[K, V]     // for the batches that are about to be made
	open     int                // batches that run
	queue    []*batch           // that may not yet
	did      []*entry[K, V]     // effects, in the order of their being sent
	times    map[K]int          // how often an effect was done, in a replay
}

// A table is a tableOf.
type table interface {
	label() string
	cutLocked(to []*batch) []*batch
	nextLocked() *batch
	recordLocked() func() ([]Answer, error)
}

// An entry is a request and its answer, which its batch writes while the request is open, and which does not change afterwards.
type entry[K comparable, V any] struct {
	request
	t   *tableOf[K, V]
	key K
	v   V
	err error // if the source has panicked, a *thrown
}

// A thrown is the value of a panic.
type thrown struct{ value any }

func (t *thrown) Error() string { return fmt.Sprint(t.value) }

// throw makes a panic of e.
func (e *entry[K, V]) throw(value any) { e.set, e.panicked, e.err = true, true, &thrown{value} }

// result is what every Get returns.
func (e *entry[K, V]) result() (V, error) {
	if e.panicked {
		panic(e.err.(*thrown).value)
	}
	return e.v, e.err
}

// in returns the table of src in s. A new one has room for this many keys, or a little less: its map would grow with the first
// round, in which the caller is one of a crowd.
func (src *Source[K, V]) in(s *Session, crowd int) *tableOf[K, V] {
	return tableIn(s, src, src.name, func() *tableOf[K, V] {
		t := &tableOf[K, V]{s: s, of: src, name: src.name, load: overridden(s, src, src.load), opts: src.opts}
		t.m = make(map[K]*entry[K, V], min(crowd, mostRoom))
		return t
	})
}

// tableIn finds the table of src, or makes it, which must be the only one of its name: a recording would mix two.
func tableIn[K comparable, V any](s *Session, src any, name string, create func() *tableOf[K, V]) *tableOf[K, V] {
	s.guard.Lock()
	t := lookLocked[K, V](s, src)
	taken := t == nil && s.named(name)
	if t == nil && !taken {
		t = create()
		if len(s.order) >= fewTables {
			if s.tables == nil {
				s.tables = map[any]table{}
			}
			s.tables[src] = t
		}
		s.order = append(s.order, t)
	}
	s.guard.Unlock()
	if taken {
		panic("fetch: two sources of one name in a session: " + name)
	}
	return t
}

const mostRoom = 1 << 10

// fewTables are found sooner one after another than in a map.
const fewTables = 8

// lookLocked returns the table of src, nil if there is none yet.
func lookLocked[K comparable, V any](s *Session, src any) *tableOf[K, V] {
	for _, t := range s.order[:min(len(s.order), fewTables)] {
		if t, ok := t.(*tableOf[K, V]); ok && t.of == src {
			return t
		}
	}
	t, _ := s.tables[src].(*tableOf[K, V])
	return t
}

func (s *Session) named(name string) bool {
	return slices.ContainsFunc(s.order, func(t table) bool { return t.label() == name })
}

// newLocked makes a request, which nobody waits for yet. Requests are made a few at a time, as the session keeps them together.
func (t *tableOf[K, V]) newLocked(k K) *entry[K, V] {
	if len(t.made) == 0 {
		t.made = make([]entry[K, V], max(1, min(len(t.m), 16)))
	}
	e := &t.made[0]
	t.made = t.made[1:]
	e.t, e.key, e.keyed, e.write = t, k, e, t.write
	if !t.write {
		t.m[k] = e
	}
	return e
}

func (t *tableOf[K, V]) label() string { return t.name }

func (e *entry[K, V]) removeLocked() {
	if e.t.m[e.key] == e {
		delete(e.t.m, e.key)
	}
}

// doneLocked is the end of a request that is back.
func (q *request) doneLocked() {
	q.state = done
	if q.passing {
		q.removeLocked()
	}
}

// gatherLocked notes a request for the batches to be made, and reports whether it is the first. A round has at most that many.
func (e *entry[K, V]) gatherLocked(most int) (table, bool) {
	t := e.t
	first := t.gathered == nil
	if first {
		t.gathered = make([]*entry[K, V], 0, most)
	}
	t.gathered = append(t.gathered, e)
	return t, first
}

// cutLocked makes batches of the gathered requests, and adds them to a list.
func (t *tableOf[K, V]) cutLocked(to []*batch) []*batch {
	size := len(t.gathered)
	if t.opts.maxBatch > 0 {
		size = t.opts.maxBatch
	}
	for entries := range slices.Chunk(t.gathered, size) {
		to = append(to, &t.batchOf(entries).batch)
	}
	t.gathered = nil
	return to
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
	if t.fullLocked() {
		t.queue = append(t.queue, &b.batch)
		return false
	}
	t.open++
	b.started = true
	return true
}

// fullLocked reports whether no more batches may run now.
func (t *tableOf[K, V]) fullLocked() bool { return t.opts.maxOpen > 0 && t.open == t.opts.maxOpen }

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

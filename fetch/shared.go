package fetch

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/promise"
)

// Shared returns a source like s that batches across sessions. At most open batches of it are open, and all requests that wait for
// a place, of all sessions, are the next batch, in which each key is once. No timer is involved: under light load nothing
// waits, and under heavy load the batches grow. Each session still remembers its own answers. A request joins no batch that is
// already sent.
//
// The context of such a batch has no values, as it belongs to nobody, and is cancelled when all sessions that wait for it have
// given up. It may go on when their Runs have returned: Close waits for it.
func Shared[K comparable, V any](s *Source[K, V], open int) *Source[K, V] {
	if s == nil {
		panic("fetch: Shared of no source")
	}
	if open < 1 {
		panic("fetch: Shared with less than one batch open")
	}
	x := &exchange[K, V]{src: s, most: open}
	c := &Source[K, V]{name: s.name, load: x.load, opts: s.opts, keys: s.keys, close: x.close}
	c.opts.MaxBatch = 0
	c.opts.Mode &^= Inline // a crowd has a goroutine: Inline is Batched, and Direct is Immediate
	return c
}

// An exchange gathers the batches of all sessions in one.
type exchange[K comparable, V any] struct {
	src  *Source[K, V]
	most int

	mu   atomicx.Mutex
	open int
	next *crowd[K, V] // the crowd that waits for a place, if there is one

	closed  bool
	running map[*crowd[K, V]]struct{}
	quiet   promise.Promise[struct{}] // closed, and no batch is open
}

// A crowd is one batch of several sessions'.
type crowd[K comparable, V any] struct {
	ctx    context.Context
	cancel context.CancelFunc
	index  map[K]int
	keys   []K
	parts  int // sessions' batches that wait for it; guarded by the exchange's mu

	requests []*request // their keys went to the source; each has an answer then
	over     promise.Promise[struct{}]
}

// load is the source of a session's batch.
func (x *exchange[K, V]) load(ctx context.Context, b *Batch[K, V]) error {
	c := x.join(b.keys)
	if c == nil {
		return ErrEnded
	}
	if _, err := c.over.Await(ctx); err != nil {
		x.leave(c)
		return err
	}
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	for i, k := range b.keys {
		if c.index[k] >= len(c.requests) { // Close was first
			return ErrEnded
		}
		e := c.requests[c.index[k]].self.(*entry[K, V])
		b.answer(i, e.v, e.err)
	}
	return nil
}

// join puts keys into the crowd that goes next, and has it go if it can. It returns nil after Close.
func (x *exchange[K, V]) join(keys []K) *crowd[K, V] {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	c := x.next
	if c == nil {
		c = &crowd[K, V]{index: map[K]int{}}
		ctx, cancel := context.WithCancel(context.Background())
		c.ctx, c.cancel = &frame{Context: ctx, inSource: true}, cancel
		x.next = c
	}
	c.parts++
	for _, k := range keys {
		if _, ok := c.index[k]; !ok {
			c.index[k] = len(c.keys)
			c.keys = append(c.keys, k)
		}
	}
	if x.open < x.most {
		x.open++
		x.next = nil
		x.startLocked(c)
	}
	return c
}

// leave is called by a load whose batch is cancelled.
func (x *exchange[K, V]) leave(c *crowd[K, V]) {
	x.mu.Lock()
	c.parts--
	last := c.parts == 0
	if last && x.next == c {
		x.next = nil
	}
	x.mu.Unlock()
	if last {
		c.cancel()
	}
}

// run runs c, and then the crowd that waits for its place.
func (x *exchange[K, V]) run(c *crowd[K, V]) {
	ended := false
	defer func() {
		if ended {
			x.runNext(c)
		} else {
			goroutine(func() { x.run(c) }) // the source has ended this goroutine; there may be more keys
		}
	}()
	size := cmp.Or(x.src.opts.MaxBatch, len(c.keys))
	for rest := c.keys[len(c.requests):]; len(rest) > 0 && c.ctx.Err() == nil; rest = c.keys[len(c.requests):] {
		c.run(x.src, rest[:min(size, len(rest))])
	}
	c.cancel()
	c.over.Fill(struct{}{})
	ended = true
}

func (x *exchange[K, V]) startLocked(c *crowd[K, V]) {
	if x.running == nil {
		x.running = map[*crowd[K, V]]struct{}{}
	}
	x.running[c] = struct{}{}
	goroutine(func() { x.run(c) })
}

// runNext is called when c is over.
func (x *exchange[K, V]) runNext(c *crowd[K, V]) {
	x.mu.Lock()
	delete(x.running, c)
	c = x.next
	if x.next = nil; c != nil {
		x.startLocked(c)
	} else {
		x.open--
	}
	quiet := x.open == 0 && x.closed
	x.mu.Unlock()
	if quiet {
		x.quiet.Fill(struct{}{})
	}
}

// close cancels the crowds, and waits until none is open.
func (x *exchange[K, V]) close(ctx context.Context) error {
	x.mu.Lock()
	x.closed = true
	quiet := x.open == 0
	crowds := slices.Collect(maps.Keys(x.running))
	if x.next != nil { // it gets a place, and its cancelled context ends it
		crowds = append(crowds, x.next)
	}
	x.mu.Unlock()
	if quiet { // mu is free here, since Explore switches at the guard of the promise
		x.quiet.Fill(struct{}{})
	}
	for _, c := range crowds {
		c.cancel()
	}
	_, err := x.quiet.Await(ctx)
	return err
}

// run calls the source with some of the keys.
func (c *crowd[K, V]) run(src *Source[K, V], keys []K) {
	t := &tableOf[K, V]{load: src.load}
	b := new(batch)
	for _, k := range keys {
		e := &entry[K, V]{key: k}
		e.self = e
		b.t, b.requests = &t.table, append(b.requests, &e.request)
	}
	c.requests = append(c.requests, b.requests...)
	var err error
	outcome.Of(func() { err = t.call(c.ctx, b) }, func(o outcome.Outcome) {
		if o.Exited() {
			err = ErrAbandoned
		}
		b.answer(err, nil, o)
	})
}

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

// Shared returns a source like s that batches across sessions. The parameter open limits the number of batches that run at the
// same time. The requests of all sessions that have to wait form the next batch, in which each key occurs once. No timer is
// involved: under light load nothing waits, and under heavy load the batches grow. Each session still remembers its own
// answers. A request never joins a batch that has already been sent.
//
// The context of a shared batch has no values, because the batch belongs to no single session. The context is cancelled when
// all sessions that wait for the batch have given up. The batch may still be running when their Runs have returned; Shutdown and Close
// wait for it.
func Shared[K comparable, V any](s *Source[K, V], open int) *Source[K, V] {
	if s == nil {
		panic("fetch: Shared with a nil Source")
	}
	if open < 1 {
		panic("fetch: Shared with less than one open batch")
	}
	x := &exchange[K, V]{src: s, most: open}
	c := &Source[K, V]{name: s.name, load: x.load, opts: s.opts, shared: x}
	c.opts.MaxBatch = 0
	c.opts.Inline = false // a crowd runs on its own goroutine
	return c
}

// An exchange combines the batches of all sessions into crowds.
type exchange[K comparable, V any] struct {
	src  *Source[K, V]
	most int

	mu   atomicx.Mutex
	open int
	next *crowd[K, V] // the crowd that waits because the limit is reached; nil if there is none

	closed  bool
	running map[*crowd[K, V]]struct{}
	quiet   promise.Promise[struct{}] // filled when the exchange is closed and no batch is open
}

// A crowd is one batch that combines batches of several sessions.
type crowd[K comparable, V any] struct {
	ctx    context.Context
	cancel context.CancelFunc
	index  map[K]int
	keys   []K
	parts  int // number of session batches that wait; guarded by the exchange's mu

	requests []*request // requests of all calls so far; each gets its answer when its call ends
	over     promise.Promise[struct{}]
}

// load answers a session's batch from a crowd.
func (x *exchange[K, V]) load(ctx context.Context, b *Batch[K, V]) error {
	c := x.addKeys(b.keys)
	if c == nil {
		return errSourceClosed
	}
	if _, err := c.over.Await(ctx); err != nil {
		x.detach(c)
		return err
	}
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	for i, k := range b.keys {
		if c.index[k] >= len(c.requests) { // Close or Shutdown cancelled the crowd before this key was sent
			return errSourceClosed
		}
		e := c.requests[c.index[k]].self.(*entry[K, V])
		b.answer(i, e.v, e.err)
	}
	return nil
}

// addKeys adds the keys to the next crowd, and starts this crowd if fewer than x.most batches are open. addKeys returns nil after
// Close or Shutdown.
func (x *exchange[K, V]) addKeys(keys []K) *crowd[K, V] {
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

// detach takes a cancelled session batch out of c. The last batch to leave cancels c.
func (x *exchange[K, V]) detach(c *crowd[K, V]) {
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

// runCrowd runs c, and then starts the crowd that waits, if there is one.
func (x *exchange[K, V]) runCrowd(c *crowd[K, V]) {
	ended := false
	defer func() {
		if ended {
			x.runNext(c)
		} else {
			goroutine(func() { x.runCrowd(c) }) // the source called runtime.Goexit; more keys may be left
		}
	}()
	size := cmp.Or(x.src.opts.MaxBatch, len(c.keys))
	for rest := c.keys[len(c.requests):]; len(rest) > 0 && c.ctx.Err() == nil; rest = c.keys[len(c.requests):] {
		c.loadKeys(x.src, rest[:min(size, len(rest))])
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
	goroutine(func() { x.runCrowd(c) })
}

// runNext removes c and starts the crowd that waits, if there is one.
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

// shutdown refuses new keys and waits until no crowd is running. If ctx ends first, it cancels all crowds.
func (x *exchange[K, V]) shutdown(ctx context.Context) error {
	x.refuseKeys()
	_, err := x.quiet.Await(ctx)
	if _, quiet, _ := x.quiet.Try(); quiet {
		return nil
	}
	x.cancelAll()
	return err
}

// close refuses new keys, cancels all crowds and waits until none is running.
func (x *exchange[K, V]) close() {
	x.refuseKeys()
	x.cancelAll()
	_, _ = x.quiet.Await(context.Background())
}

func (x *exchange[K, V]) refuseKeys() {
	x.mu.Lock()
	x.closed = true
	quiet := x.open == 0
	x.mu.Unlock()
	if quiet { // mu is not held here, because Explore switches tasks at the promise's guard
		x.quiet.Fill(struct{}{})
	}
}

// cancelAll cancels all crowds of an exchange that is closed.
func (x *exchange[K, V]) cancelAll() {
	x.mu.Lock()
	crowds := slices.Collect(maps.Keys(x.running))
	if x.next != nil { // x.next still starts, but its cancelled context ends it at once
		crowds = append(crowds, x.next)
	}
	x.mu.Unlock()
	for _, c := range crowds {
		c.cancel()
	}
}

// loadKeys calls the source with some of the keys.
func (c *crowd[K, V]) loadKeys(src *Source[K, V], keys []K) {
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
			err = errAbandoned
		}
		b.answer(err, nil, o)
	})
}

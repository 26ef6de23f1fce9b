package fetch

import (
	"context"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// Run calls body as a task and returns its error. Run returns when body and every task that it started have ended and no batch
// is open. If ctx has a session, Run uses that session. Otherwise Run makes a session and closes it before it returns. In a
// task of another Run, a Run with default Options only calls body, as a part of the outer Run.
//
// If ctx is already done, Run returns the error of the cancellation without calling body. If ctx is done later, every Get with
// ctx fails, and Run still returns the result of body. A panic in body or in a task of a combinator is raised in the caller,
// with the same value, when all tasks and batches have ended. A runtime.Goexit is passed on to the caller in the same way.
//
// Run suspends its caller. In a task of a scheduler, Run suspends only that task. A task must not wait natively, for example on
// a channel, for a goroutine that calls Run with the task's context, because that Run may wait for a request that only the
// task's scheduler can send. Get and the combinators do not have this restriction.
func Run(ctx context.Context, body func(ctx context.Context) error, o Options) error {
	if body == nil {
		panic("fetch: nil function")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	r := new(struct { // saves an allocation
		own Session // used unless ctx has a session
		d   driver
	})
	f, d := frameOf(ctx), &r.d
	s := f.session()
	switch {
	case f != nil && f.inSource:
		return ErrInSource
	case s == nil:
		s = &r.own
		s.init(ctx, o)
		defer s.Close()
	case o.ofSession():
		panic("fetch: Run in a session that already exists, with options for a new one")
	case s.hasEnded():
		return errEnded
	case o.On == nil && !o.Eager && s.driverHere(f) != &s.settled:
		return body(ctx)
	}
	d.s, d.eager, d.body = s, o.Eager, body
	d.frame.init(f, ctx, s, d)
	defer d.close()
	d.run(o.On)
	d.how.Rethrow()
	return d.err
}

// run runs the body as a task. If on is nil, the tasks run on the calling goroutine, and requests are sent when none of them is
// runnable. Otherwise the tasks form an idle.Group, which calls d.idle when all of them wait. A task that waits natively counts
// as running. A native wait may delay a round, but never splits one.
func (d *driver) run(on suspend.Spawner) {
	if on == nil && preempt.Explored() { // Explore switches tasks at each operation
		on = suspend.Here()
	}
	if on == nil {
		sched := fifo.New(fifo.Options{StallAfter: -1, OnIdle: d.orderedIdle}) // stall reports are off, because a stall affects only this Run
		d.ordered = true
		d.register(sched)
		_ = sched.Run(context.Background(), d.task)
		return
	}
	d.group = idle.New(on, d.idle)
	d.register(d.group)
	if err := d.group.Go(func() { _ = d.task(context.Background()) }); err != nil {
		d.err = err
		return
	}
	_ = d.group.Wait(context.Background())
}

// task calls the body and records how the body ends.
func (d *driver) task(context.Context) error {
	returned := false
	defer func() {
		if !returned {
			d.how = outcome.Recovered(recover())
		}
		d.body = nil // a session that outlives the Run must not retain the body
	}()
	d.err = d.body(&d.frame)
	returned = true
	return nil
}

// register makes d the driver of the tasks of on.
func (d *driver) register(on suspend.Spawner) {
	d.on = on
	d.s.guard.Lock()
	d.node.Value = d
	d.s.drivers.Push(&d.node)
	d.s.guard.Unlock()
}

// Open opens a session for goroutines that are not tasks of a Run, such as the resolvers of a GraphQL server. The session
// cannot see whether more goroutines are about to call Get. Therefore it sends a request after other goroutines have had a few
// turns, if no round is open. Requests that are made while a round is open form the next round. A timer limits the delay on a
// busy machine, see Options.SettleWithin.
//
// The session lasts until Close is called. Batches inherit the values of ctx and are cancelled when ctx is done.
func Open(ctx context.Context, o Options) (context.Context, *Session) {
	s := new(Session)
	s.init(ctx, o)
	return frameOf(ctx).child(ctx, s, nil), s
}

// Of returns the session of ctx, or nil if ctx has none.
func Of(ctx context.Context) *Session { return frameOf(ctx).session() }

func (s *Session) init(ctx context.Context, o Options) {
	if o.Settle < 0 && o.SettleWithin < 0 {
		panic("fetch: Settle and SettleWithin are both negative")
	}
	s.opts, s.ctx, s.tables = o, ctx, s.few[:0]
	s.settled.s, s.settled.eager, s.settled.settled = s, o.Eager, true
	if o.Trace {
		s.tracer = newTracer(frameOf(ctx))
	}
	if o.Replay != nil {
		s.recorded = newRecorded(o.Replay)
	}
}

// Stats returns the counters of the session.
func (s *Session) Stats() Stats {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.statsLocked()
}

func (s *Session) statsLocked() Stats {
	stats := s.stats
	stats.Shared = stats.Gets - s.made
	return stats
}

// Close ends the session. Close cancels the open batches and suspends the caller until these batches have returned. Every
// waiting Get and every later Get returns an error that is suspend.ErrEnded, but a waiting Get still returns a value if its source
// succeeds despite the cancellation. Record and Trace can be called after Close. The error is always nil. There is no Shutdown, because
// each request has a caller that waits for it: a Session that nobody waits in has nothing to finish.
//
// A source must not close its session, because Close would wait for the source. Close panics, and changes nothing, if it is called on
// the goroutine that calls a source of the session.
func (s *Session) Close() error {
	var open []*batch
	caller := gid.Get()
	s.guard.Lock()
	if s.calledByLocked(caller) {
		s.guard.Unlock()
		panic("fetch: Close of a session called by one of its sources")
	}
	if !s.ended {
		s.ended = true
		open = s.settled.abandonLocked(open)
		for n := s.drivers.First(); n != nil; n = n.Next() {
			open = n.Value.abandonLocked(open)
		}
	}
	quiet := s.open == 0
	s.guard.Unlock()
	cancelAll(open, errEnded)
	if !quiet {
		_, _ = suspend.Wait[struct{}](context.Background(), (*closing)(s))
	}
	return nil
}

// abandonLocked fails the pending requests of d, because the session has ended, and returns the given list with the batches of
// d appended.
func (d *driver) abandonLocked(open []*batch) []*batch {
	d.releaseLocked()
	for n := d.batches.First(); n != nil; n = n.Next() {
		open = append(open, n.Value)
	}
	return open
}

// calledByLocked reports whether the goroutine is calling a source of s.
func (s *Session) calledByLocked(goroutine int64) bool {
	if s.settled.callsLocked(goroutine) {
		return true
	}
	for n := s.drivers.First(); n != nil; n = n.Next() {
		if n.Value.callsLocked(goroutine) {
			return true
		}
	}
	return false
}

func (d *driver) callsLocked(goroutine int64) bool {
	for n := d.batches.First(); n != nil; n = n.Next() {
		if n.Value.caller == goroutine {
			return true
		}
	}
	return false
}

func (s *Session) hasEnded() bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ended
}

// closing is the suspend.Source on which Close waits until no batch is open.
type closing Session

func (c *closing) Guard() *suspend.Guard                 { return &c.guard }
func (c *closing) Try() (v struct{}, ok bool, err error) { return v, c.open == 0, nil }
func (c *closing) Enqueue(r suspend.Resumer[struct{}])   { c.closers = append(c.closers, r) }
func (c *closing) Remove(suspend.Resumer[struct{}])      {}

func (f *frame) Value(key any) any {
	if key == (frameKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// AfterFunc calls the AfterFunc method of the wrapped context, if it has one. Otherwise package context would resume a
// cancelled task from a goroutine, perhaps after the next round.
func (f *frame) AfterFunc(g func()) (stop func() bool) { return cancelctx.AfterFunc(f.Context, g) }

// child returns a new frame that wraps ctx and inherits from f, which may be nil.
func (f *frame) child(ctx context.Context, s *Session, d *driver) *frame {
	c := new(frame)
	c.init(f, ctx, s, d)
	return c
}

// init initialises c as a child of f.
func (c *frame) init(f *frame, ctx context.Context, s *Session, d *driver) {
	c.Context, c.s, c.d = ctx, s, d
	if outer, ok := ctx.(*frame); ok {
		c.Context = outer.Context // skips the outer frame, so that frames do not nest
	}
	if f != nil {
		c.inSource, c.label, c.trail, c.askers = f.inSource, f.label, f.trail, f.askers
	}
	if s.tracer != nil && (c.trail == nil || f.s != s) {
		c.trail = new(trail)
	}
}

// Label returns a context whose requests have a name in the trace. A label on the context of a Run names the whole trace.
func Label(ctx context.Context, name string) context.Context {
	f := frameOf(ctx)
	if f != nil && f.s != nil && f.s.tracer == nil {
		return ctx
	}
	l := &frame{Context: ctx, label: name}
	if ctx == context.Context(f) {
		l.Context = f.Context
	}
	if f != nil {
		l.s, l.d, l.inSource, l.trail = f.s, f.d, f.inSource, f.trail
	}
	return l
}

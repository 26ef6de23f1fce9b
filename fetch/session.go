package fetch

import (
	"context"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// Run is Options.Run with the default Options.
func Run(ctx context.Context, body func(ctx context.Context) error) error {
	return Options{}.Run(ctx, body)
}

// Run calls body as a task and returns its error, when body and every task that it has started have ended and no batch is
// open. With default Options in a task of a Run, it only calls body: both are one Run. If ctx has a session, Run uses that
// session. Otherwise it makes a session, which ends with it.
//
// If ctx is done already, Run returns the error of the cancellation and body does not run. If ctx is done later, every Get
// with it fails, and Run returns the result of body as always. A panic of body, or of a task of a combinator, is raised in the
// caller with the same value, when everything has ended. So is a runtime.Goexit.
//
// Run suspends its caller. In a task of any scheduler it suspends that task only. A task must not wait natively, on a channel, for a
// goroutine that calls Run with the task's context: that Run may wait for a request which only the scheduler of the task can send.
// A Get there does not, nor do the combinators.
func (o Options) Run(ctx context.Context, body func(ctx context.Context) error) error {
	if body == nil {
		panic("fetch: nil function")
	}
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	r := new(struct { // saves allocations
		own Session // unless there is one
		d   driver
	})
	f, d := frameOf(ctx), &r.d
	s := f.session()
	switch {
	case f != nil && f.inSource:
		return ErrInSource
	case s == nil:
		s = &r.own
		s.begin(ctx, o)
		defer s.Close()
	case o.ofSession():
		panic("fetch: options of a session for a Run inside one")
	case s.over():
		return ErrEnded
	case o.On == nil && o.Policy == Rounds && s.driverHere(f) != &s.settled:
		return body(ctx)
	}
	d.s, d.policy, d.body = s, o.Policy, body
	d.frame.begin(f, ctx, s, d)
	defer d.end()
	d.run(o.On)
	d.how.Rethrow()
	return d.err
}

// run runs the body as a task. Without a scheduler that is on the calling goroutine, and requests go out when it is idle. The tasks of
// a scheduler are a Group, which calls idle when all of them wait. A task that waits natively counts as running, which delays a round and
// never splits one.
func (d *driver) run(on suspend.Spawner) {
	if on == nil && preempt.Explored() { // the tasks take turns at each operation then
		on = suspend.Here()
	}
	if on == nil {
		sched := fifo.New(fifo.Options{StallAfter: -1, OnIdle: d.orderedIdle}) // nobody else is on this goroutine
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

// task calls the body.
func (d *driver) task(context.Context) error {
	returned := false
	defer func() {
		if !returned {
			d.how = outcome.Recovered(recover())
		}
		d.body = nil // the session may be kept
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

// Open opens a session for goroutines that are not tasks of a Run, such as the resolvers of a GraphQL server. Whether more
// of them are about to call Get cannot be seen. So a request goes out after other goroutines could run a few times, if no round is
// open. The requests made while a round is open are the next round. A timer is the limit where others compute, see Options.SettleWithin.
//
// The session ends with Close. Batches have the values of ctx, and are cancelled when ctx is done.
func Open(ctx context.Context, o Options) (context.Context, *Session) {
	s := new(Session)
	s.begin(ctx, o)
	return frameOf(ctx).child(ctx, s, nil), s
}

// Of returns the session of a context, nil if it has none.
func Of(ctx context.Context) *Session { return frameOf(ctx).session() }

func (s *Session) begin(ctx context.Context, o Options) {
	if o.Settle < 0 && o.SettleWithin < 0 {
		panic("fetch: neither turns nor a time to settle")
	}
	s.opts, s.ctx, s.tables = o, ctx, s.few[:0]
	s.settled.s, s.settled.policy, s.settled.settled = s, o.Policy, true
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

// Close ends the session. It cancels the batches that are open, and suspends the caller until they have returned. Every
// waiting Get and every later Get returns ErrEnded, unless its source answers even then. The answers stay, for Record and
// Trace.
func (s *Session) Close() {
	var open []*batch
	s.guard.Lock()
	if !s.ended {
		s.ended = true
		open = s.settled.abandonLocked(open)
		for n := s.drivers.First(); n != nil; n = n.Next() {
			open = n.Value.abandonLocked(open)
		}
	}
	quiet := s.open == 0
	s.guard.Unlock()
	cancelAll(open, ErrEnded)
	if !quiet {
		_, _ = suspend.Wait[struct{}](context.Background(), (*closing)(s), false)
	}
}

// abandonLocked fails what is pending, as the session has ended, and adds the batches of d to a list.
func (d *driver) abandonLocked(open []*batch) []*batch {
	d.releaseLocked()
	for n := d.batches.First(); n != nil; n = n.Next() {
		open = append(open, n.Value)
	}
	return open
}

func (s *Session) over() bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.ended
}

// closing is what Close waits for: that no batch is open.
type closing Session

func (c *closing) Guard() *suspend.Guard                 { return &c.guard }
func (c *closing) Try() (v struct{}, ok bool, err error) { return v, c.open == 0, nil }
func (c *closing) Enqueue(r suspend.Resumer[struct{}])   { c.closers = append(c.closers, r) }
func (c *closing) Remove(suspend.Resumer[struct{}])      {}

// Value implements context.Context.
func (f *frame) Value(key any) any {
	if key == (frameKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// AfterFunc calls the method of the context inside, if it has one. Otherwise a goroutine would resume a task that its group
// cancels, perhaps after the next round.
func (f *frame) AfterFunc(g func()) (stop func() bool) { return cancelctx.AfterFunc(f.Context, g) }

// child returns a frame like f around ctx. f may be nil.
func (f *frame) child(ctx context.Context, s *Session, d *driver) *frame {
	c := new(frame)
	c.begin(f, ctx, s, d)
	return c
}

// begin makes c a child of f.
func (c *frame) begin(f *frame, ctx context.Context, s *Session, d *driver) {
	c.Context, c.s, c.d = ctx, s, d
	if outer, ok := ctx.(*frame); ok {
		c.Context = outer.Context // makes the chain as deep as the user's contexts are
	}
	if f != nil {
		c.inSource, c.label, c.trail, c.askers = f.inSource, f.label, f.trail, f.askers
	}
	if s.tracer != nil && (c.trail == nil || f.s != s) {
		c.trail = new(trail)
	}
}

// Label returns a context whose requests carry a name in the trace; a label on the context of a Run names the trace.
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

package fetch

import (
	"context"

	"github.com/braidgo/braid/suspend"
)

// A Session is what answers are remembered in: the extent of one request of a server, as a rule. Its methods may be called
// from any goroutine.
type Session struct {
	guard       suspend.Guard // of all that follows, and of the session's tables, drivers and requests
	opts        Options
	ctx         context.Context // the one that the session was made with; batches have its values
	order       []table         // of each *Source and *Effect, in the order of their making
	tables      map[any]table   // by these, but the first few
	drivers     []*driver       // of the Runs that are not over
	roomDrivers [1]*driver      // for the first
	roomOrder   [2]table        // likewise
	settled     *driver         // of goroutines that are no tasks of a Run
	outsiders   driver
	stats       Stats
	open        int // batches
	ended       bool
	closers     []suspend.Resumer[struct{}]
	tracer      *tracer     // nil: no trace
	recorded    replay      // nil: no replay
	memos       map[any]any // by *Memo: a map of *memoized
	later       []*later    // that nobody has started
}

// Stats counts the work of a session so far.
type Stats struct {
	Rounds  int // dispatches that sent something
	Batches int // calls of sources
	Open    int // of these, those that have not returned
	Keys    int // in them
	Gets    int // keys that were asked for
	Shared  int // Gets that made no request: another had made it
	Dropped int // requests that were never sent, since all waiters gave up
	Errors  int // keys that failed
}

// With opens a session for goroutines that are not tasks of a Run, such as the resolvers of a GraphQL server. Nobody knows
// whether more of them are about to ask. So a request goes out after other goroutines could run a few times, if no round is open. The
// requests that come meanwhile are the next round. A timer is the limit where others compute, see Options.SettleWithin.
//
// The session ends with Close. Batches have the values of ctx, and are cancelled when ctx is done.
func With(ctx context.Context, o Options) (context.Context, *Session) {
	s := newSession(ctx, o)
	return frameOf(ctx).child(ctx, s, nil), s
}

// Of returns the session of a context, nil if it has none.
func Of(ctx context.Context) *Session { return frameOf(ctx).session() }

func newSession(ctx context.Context, o Options) *Session {
	s := new(Session)
	s.begin(ctx, o)
	return s
}

func (s *Session) begin(ctx context.Context, o Options) {
	if o.Settle < 0 && o.SettleWithin < 0 {
		panic("fetch: neither turns nor a time to settle")
	}
	s.opts, s.ctx = o, ctx
	s.order = s.roomOrder[:0]
	s.settled = &s.outsiders
	s.outsiders = driver{s: s, policy: o.Policy, settled: true}
	if o.Trace {
		s.tracer = newTracer(frameOf(ctx))
	}
	if o.Replay != nil {
		s.recorded = newReplay(o.Replay)
	}
}

// Stats returns the counters of the session.
func (s *Session) Stats() Stats {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.stats
}

// Close ends the session. It cancels the batches that are open, and suspends the caller until they have returned. Every Get
// that waits, and every later one, returns ErrEnded, unless its source has answered all the same. The answers stay, for Record and
// Trace. It returns nil.
func (s *Session) Close() error {
	var open []*batch
	s.guard.Lock()
	if !s.ended {
		s.ended = true
		for _, d := range append(s.drivers, s.settled) {
			d.abandonLocked()
			open = append(open, d.batches...)
		}
	}
	quiet := s.open == 0
	s.guard.Unlock()
	cancelAll(open, ErrEnded)
	if !quiet {
		_, _ = suspend.Wait[struct{}](context.Background(), (*closing)(s), false)
	}
	return nil
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

// A frame is the context that tasks get: what fetch has to find in it.
type frame struct {
	context.Context
	s        *Session // nil: only a label
	d        *driver  // of the Run that it was made for; nil: none
	crowd    int      // items of the combinator that it was made for
	inSource bool     // it is a source's
	trail    *trail   // nil: no trace
	label    string
}

type frameKey struct{}

// Value implements context.Context.
func (f *frame) Value(key any) any {
	if key == (frameKey{}) {
		return f
	}
	return f.Context.Value(key)
}

// AfterFunc is that of the context inside, if it has one. So a task that is cancelled by its group is told at once, and not by a
// goroutine that comes after the next round.
func (f *frame) AfterFunc(g func()) (stop func() bool) {
	if a, ok := f.Context.(interface {
		AfterFunc(func()) (stop func() bool)
	}); ok {
		return a.AfterFunc(g)
	}
	return context.AfterFunc(f.Context, g)
}

// frameOf returns the innermost frame of ctx, nil if there is none.
func frameOf(ctx context.Context) *frame {
	f, ok := ctx.(*frame)
	if !ok {
		f, _ = ctx.Value(frameKey{}).(*frame)
	}
	return f
}

func (f *frame) session() *Session {
	if f == nil {
		return nil
	}
	return f.s
}

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
		c.Context = outer.Context // as deep as the user's are
	}
	if f != nil {
		c.inSource, c.label, c.trail, c.crowd = f.inSource, f.label, f.trail, f.crowd
	}
	if s.tracer != nil && (c.trail == nil || f.s != s) {
		c.trail = new(trail)
	}
}

// Label returns a context whose requests carry a name in the trace; the one that a Run is given names the trace.
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

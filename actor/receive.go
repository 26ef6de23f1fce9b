package actor

import (
	"context"
	"math/bits"
	"time"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/watching"
	"github.com/braidgo/braid/suspend"
)

// Open returns an inbox for the calling goroutine or task. When ctx is done, the inbox is killed.
func Open[M any](ctx context.Context, o Options[M]) *Inbox[M] {
	in := new(Inbox[M])
	in.init(ctx, o)
	in.life.follow(ctx)
	return in
}

func (in *Inbox[M]) init(ctx context.Context, o Options[M]) {
	if ctx == nil {
		panic("actor: nil context")
	}
	if in.dead = o.Dead; o.Cap > 0 {
		in.ops, in.mail.counts = &ops[M]{cap: o.Cap}, true
	}
	var m M
	asks := any(m) == nil // M is an interface, so a message may be a request
	if !asks {
		_, asks = any(m).(pending)
	}
	in.life.init(ctx, in, asks, o.Name, o.OnEnd)
}

func (l *life) init(ctx context.Context, b box, asks bool, name string, onEnd func(error)) {
	l.box, l.asks = b, asks
	switch {
	case ctx != context.Background():
		x := new(struct { // one allocation
			given
			parent context.Context
		})
		x.parent = ctx
		l.given, x.given.parent = &x.given, &x.parent
	case name != "" || onEnd != nil:
		l.given = new(given)
	}
	if onEnd != nil {
		l.given.onEnd = onEnd
	}
	if name != "" {
		called := name
		l.given.name = &called
	}
	l.ctx.InitAs((*lineage)(l), ctx, watching.Here)
}

// follow kills the actor when ctx is done. It reports whether ctx can end.
func (l *life) follow(ctx context.Context) bool {
	if ctx == context.Background() || cancelctx.Of(ctx) == nil && ctx.Done() == nil { // ctx.Done comes last, because it may allocate
		return false
	}
	l.ctx.AfterFunc(func() { l.kill(context.Cause(&l.ctx)) })
	return true
}

// Ref returns the address of the inbox.
func (in *Inbox[M]) Ref() Ref[M] { return Ref[M]{in} }

// Len returns the number of messages that have been accepted but not yet received.
func (in *Inbox[M]) Len() int {
	in.life.guard.Lock()
	defer in.life.guard.Unlock()
	return in.countLocked()
}

func (in *Inbox[M]) countLocked() int { return in.arrived.count + in.mail.count }

// Receive removes and returns the first message, and suspends the caller until there is one. If the inbox is stopped and empty, Receive
// returns ErrStopped. If the inbox is killed, Receive returns an error that wraps the cause. If ctx is already done, or is done first,
// Receive returns the error of the cancellation and removes no message.
//
// A Send synchronizes before the return of the Receive that gets its message.
func (in *Inbox[M]) Receive(ctx context.Context) (m M, err error) {
	ctx, err = in.beginWait(ctx)
	if err != nil {
		return m, err
	}
	for {
		if p, ok := in.mail.after(place[M]{}); ok {
			m = p.message()
			in.received(p)
			return m, nil
		}
		in.life.within = nil
		if _, err := suspend.Wait[struct{}](ctx, (*arrival)(&in.life)); err != nil {
			return m, err
		}
		if in.life.killed.Load() { // a Kill has followed the message
			return m, in.life.cancellation()
		}
	}
}

// Handle calls f with one message after another until f returns anything but Skip, and returns the result of f. It suspends the caller
// while there is no such message, and returns the same errors as Receive. Each call of Handle begins at the first message in the
// mailbox, and calls f once with each message. Handle yields to other tasks at least once in 64 calls, but not between skipped
// messages, so f should skip quickly.
//
// f runs in the caller's task without locks, and may suspend, receive, and call Handle. A skipped message keeps its place. While f
// handles a message, the message stays in the mailbox, but nested receives pass over it. The message counts as received when f returns
// anything but Skip, or panics.
func (in *Inbox[M]) Handle(ctx context.Context, f func(M) error) error { return in.handle(ctx, nil, f) }

// HandleWithin is Handle with a timeout: it returns ErrTimeout if f skips every message for the time d. A skipped message does not
// restart the timeout. When the caller notices that this time is over, it calls f with the messages already in the mailbox, but with no
// later message. If d is not positive, the caller notices this at once.
func (in *Inbox[M]) HandleWithin(ctx context.Context, d time.Duration, f func(M) error) error {
	t := in.life.startTimer(d)
	defer t.stop()
	return in.handle(ctx, t, f)
}

func (in *Inbox[M]) handle(ctx context.Context, t *timer, f func(M) error) error {
	ctx, err := in.beginWait(ctx)
	if err != nil {
		return err
	}
	var at place[M]
	for {
		if took, err := in.scanOnce(&at, f); took {
			return err
		}
		if in.life.state == ended { // a Close in f does not bury a message that a function is handling
			each(in.bury)
		}
		in.life.within = t // a wait in f may have changed this field
		if _, err := suspend.Wait[struct{}](ctx, (*arrival)(&in.life)); err != nil {
			return err
		}
		if in.life.killed.Load() { // a Kill has followed the message
			return in.life.cancellation()
		}
	}
}

// beginWait begins a wait and returns the context for it. It replaces the actor's own context with context.Background, because only a Kill
// ends the actor's context, and a Kill wakes the waiter. A waiter that is registered with a context needs 160 more bytes on its stack,
// and 100 on the heap.
func (in *Inbox[M]) beginWait(ctx context.Context) (context.Context, error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, err
	}
	suspend.Preemptible()
	in.fresh()
	if in.life.killed.Load() {
		return nil, in.life.cancellation()
	}
	if ctx == &in.life.ctx {
		ctx = context.Background()
	}
	return ctx, nil
}

// turnsUntilYield is the number of messages that an actor handles before it yields to other tasks.
const turnsUntilYield = 64

// fresh is called after suspend.Preemptible, before the mailbox is scanned from its front. One call in turnsUntilYield also calls the
// method yieldAndCompact.
func (in *Inbox[M]) fresh() {
	in.mail.spins = 0
	if in.mail.turns++; in.mail.turns >= turnsUntilYield {
		in.yieldAndCompact()
	}
}

// yieldAndCompact yields to other tasks, and compacts the mail if it is sparse.
func (in *Inbox[M]) yieldAndCompact() {
	in.mail.turns = 0
	suspend.Yield()
	if in.mail.sparse() && !in.mail.inHand() {
		in.mail.compact()
	}
}

// scanOnce is like scan, for a caller that may recover a panic in f. The message with which f panicked counts as received.
func (in *Inbox[M]) scanOnce(at *place[M], f func(M) error) (took bool, err error) {
	calling := true
	defer func() {
		if calling {
			in.received(*at)
		}
	}()
	took, err = in.scan(at, f)
	calling = false
	return took, err
}

// scan calls f with each message behind the place *at, until f returns anything but Skip. It reports whether f has taken a message.
// During a call of f, *at is the place of f's message. If scan returns false, *at is the place of the last message that f has skipped.
//
// A message is busy while f handles it, so that its segment stays in place, even if f receives other messages.
func (in *Inbox[M]) scan(at *place[M], f func(M) error) (took bool, err error) {
	s, mask := at.seg, above(at.at)
	if s == nil {
		s, mask = in.mail.first, ^uint64(0)
	}
	for ; s != nil; s, mask = s.next, ^uint64(0) {
		busy := s.busy // the messages that outer calls are handling
		seen := s.live &^ busy & mask
		if seen == 0 {
			continue
		}
		for at.seg = s; seen != 0; seen = s.live &^ busy & above(at.at) {
			i := bits.TrailingZeros64(seen)
			at.at, s.busy = i, busy|1<<(uint(i)&63)
			err := f(s.slots[i])
			if _, skipped := err.(skip); !skipped {
				if in.mail.counts {
					in.received(*at)
				} else { // like received, but with one call less
					in.mail.remove(*at)
				}
				return true, err
			}
			s.busy = busy
			suspend.Preemptible()
		}
	}
	return false, nil
}

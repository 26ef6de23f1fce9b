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
func Open[M any](ctx context.Context, o ...Options[M]) *Inbox[M] {
	in := new(Inbox[M])
	in.init(ctx, o)
	in.follow(ctx)
	return in
}

func (in *Inbox[M]) init(ctx context.Context, o []Options[M]) {
	switch len(o) {
	case 0:
	case 1:
		o := &o[0]
		if o.Dead != nil || o.OnEnd != nil {
			in.hooks = &hooks[M]{o.Dead, o.OnEnd}
		}
		if o.Cap > 0 {
			in.ops, in.mail.counts = &ops[M]{cap: o.Cap}, true
		}
		if o.Name != "" || o.OnStuck != nil {
			in.who = &who{name: o.Name, after: o.StuckAfter, onStuck: o.OnStuck}
			if o.OnStuck != nil && o.StuckAfter > 0 && in.self != nil {
				in.who.stuck = in.self
				watched.Store(true)
			}
		}
	default:
		panic("actor: more than one Options")
	}
	if ctx == nil {
		panic("actor: nil context")
	}
	if ctx != context.Background() {
		parent := ctx
		in.parent = &parent
	}
	in.ctx.InitAs((*lineage)(&in.life), ctx, watching.Here)
	var m M
	if in.asks = any(m) == nil; !in.asks { // so M is an interface
		_, in.asks = any(m).(pending)
	}
}

// follow has the inbox killed when ctx, the parent of its context, is done. It reports whether ctx may ever be.
func (in *Inbox[M]) follow(ctx context.Context) bool {
	if in.parent == nil || cancelctx.Of(ctx) == nil && ctx.Done() == nil { // an actor's Done channel is made on demand
		return false
	}
	in.ctx.AfterFunc(func() { in.kill(context.Cause(&in.ctx)) })
	return true
}

// Ref returns the address of the inbox.
func (in *Inbox[M]) Ref() Ref[M] { return Ref[M]{in} }

// Len returns the number of messages that are accepted and not received.
func (in *Inbox[M]) Len() int {
	in.guard.Lock()
	defer in.guard.Unlock()
	return in.arrived.count + in.mail.count
}

// Receive receives the first message, suspending the caller until there is one. Once the inbox is stopped and empty, it returns
// ErrStopped; if the inbox is killed, an error that is the cause. If ctx is done first, or already, Receive returns the error
// of the cancellation and has taken nothing.
//
// A Send synchronizes before the return of the Receive that gets its message.
func (in *Inbox[M]) Receive(ctx context.Context) (m M, err error) {
	ctx, err = in.begin(ctx)
	if err != nil {
		return m, err
	}
	for {
		if p, ok := in.mail.after(place[M]{}); ok {
			m = p.message()
			in.received(p)
			return m, nil
		}
		in.within = nil
		if _, err := suspend.Wait[struct{}](ctx, (*arrival[M])(in), false); err != nil {
			return m, err
		}
		if in.killed.Load() { // the Kill came after the message
			return m, in.cancellation()
		}
	}
}

// Handle calls f with the first message that f does not Skip, and returns its result. It suspends the caller until there is
// such a message, and fails as Receive does. Each wait begins with the first message in the mailbox, and calls f once
// with each. Other tasks run after 64 waits at the latest, but not between the messages that one wait skips: skipping is meant
// to be quick.
//
// f runs in the caller's task, under no lock, and may suspend, receive, and handle. A message that f skips keeps its place.
// While f runs, its message stays in its place, but nested receives pass over it. A message counts as received when f
// returns, or panics.
func (in *Inbox[M]) Handle(ctx context.Context, f func(M) error) error { return in.handle(ctx, nil, f) }

// HandleWithin is Handle with a timeout: if no message that f takes comes for d, it returns ErrTimeout. A message that f skips does not
// begin d anew. When the caller finds d to be over, f is called with the messages that are there, but with no later message. If d is
// not positive, that is at once.
func (in *Inbox[M]) HandleWithin(ctx context.Context, d time.Duration, f func(M) error) error {
	t := in.startTimer(d)
	defer t.stop()
	return in.handle(ctx, t, f)
}

func (in *Inbox[M]) handle(ctx context.Context, t *timer, f func(M) error) error {
	ctx, err := in.begin(ctx)
	if err != nil {
		return err
	}
	var at place[M]
	for {
		if took, err := in.look(&at, f); took {
			return err
		}
		if in.state == ended { // a Close in f leaves the messages in hand
			each(in.bury)
		}
		in.within = t // f has waited without it, perhaps
		if _, err := suspend.Wait[struct{}](ctx, (*arrival[M])(in), false); err != nil {
			return err
		}
		if in.killed.Load() { // the Kill came after the message
			return in.cancellation()
		}
	}
}

// begin is the beginning of a wait. It returns the context to wait with: none instead of the actor's own one, whose end is a Kill, which
// wakes the waiter. A waiter that is registered with a context needs 160 bytes more of its stack, and 100 of heap.
func (in *Inbox[M]) begin(ctx context.Context) (context.Context, error) {
	if err := suspend.Err(ctx); err != nil {
		return nil, err
	}
	suspend.Preemptible()
	in.fresh()
	if in.killed.Load() {
		return nil, in.cancellation()
	}
	if ctx == &in.ctx {
		ctx = context.Background()
	}
	return ctx, nil
}

// turnsUntilYield is how many messages an actor handles before it lets other tasks run.
const turnsUntilYield = 64

// fresh is called before the mailbox is looked at from its front, after a Preemptible: another task may come between two messages.
func (in *Inbox[M]) fresh() {
	in.mail.spins = 0
	if in.mail.turns++; in.mail.turns >= turnsUntilYield {
		in.settle()
	}
}

// settle is the part of fresh that is not due for each message.
func (in *Inbox[M]) settle() {
	in.mail.turns = 0
	suspend.Yield()
	if in.mail.sparse() && !in.mail.inHand() {
		in.mail.compact()
	}
}

// look is scan for a caller that may recover a panic of f. The message with which f has panicked counts as received.
func (in *Inbox[M]) look(at *place[M], f func(M) error) (took bool, err error) {
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

// scan calls f with each message behind at, until f takes one, and reports whether it did. at is the message of the call, and then
// the last one skipped.
//
// A message that f is called with is busy, so its segment stays where it is, whatever f does.
func (in *Inbox[M]) scan(at *place[M], f func(M) error) (took bool, err error) {
	s, mask := at.seg, above(at.at)
	if s == nil {
		s, mask = in.mail.first, ^uint64(0)
	}
	for ; s != nil; s, mask = s.next, ^uint64(0) {
		busy := s.busy // f has returned, so busy is exact
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
				} else { // the same, with a call less
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

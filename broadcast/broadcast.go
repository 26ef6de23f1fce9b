// Package broadcast passes each value to all subscribers.
//
// A channel hands each value to one receiver. A loop over a channel for each subscriber blocks at the slowest
// subscriber, or at a subscriber that receives no more, or drops values with a default. Here each subscription has a
// buffer, and a policy for the time when it is full:
//
//	news := broadcast.New[string]()
//	...
//	sub := news.Subscribe(16, broadcast.DropOldest)
//	defer sub.Close()
//	for headline := range sub.All(ctx) {
//		show(headline)
//	}
//
// It is tokio's broadcast channel, and the SharedFlow of kotlinx.coroutines. Either all subscribers of the moment get a value, or, if
// its Publish fails, none.
//
// Use package watch where only the latest value counts, and package chanx where each value is for one receiver.
package broadcast

import (
	"context"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a Publish after the Close of its Topic, and of a Recv when no value is left and none will come.
var ErrClosed = outcome.Named("broadcast: closed", suspend.ErrClosed)

// A Topic passes the values that are published on to its subscriptions, in the same order to all. The zero Topic is open and has no
// subscribers, and a value without subscribers is dropped. A Topic must not be copied.
type Topic[T any] struct {
	// -P> is a Publish, -R> a Recv, or a Close of a subscription.
	//
	//	full == 0 -P> each subscription has the value; full counts the subscriptions of Wait without further room
	//	full > 0  -P> wait
	//	full > 0  -R> full-1   at 0 the values of the first publishers are passed on, until full is above 0 again
	//
	// Invariant: publishers wait only while full is above 0. A subscription whose receivers wait has an empty buffer. A closed
	// Topic has no publishers.
	// Debt: a change that takes full to 0 must pass on the values that wait; otherwise their publishers would wait
	// beside free room.

	guard      suspend.Guard // guards the subscriptions, too
	closed     bool
	full       int
	subs       dlist.List[*Subscription[T]]
	publishers suspend.Queue[struct{}, T]
}

// New returns an open Topic.
func New[T any]() *Topic[T] { return new(Topic[T]) }

// Publish passes v on to all subscriptions. It suspends the caller as long as a subscription of the policy Wait has no
// room, and behind earlier publishers. If ctx is done first, or already, Publish returns the cancellation error. If t
// is closed first, or already, it returns ErrClosed. In both cases no subscription has v. If the last room and the
// cancellation meet, either may win.
//
// A Publish synchronizes before the return of each Recv that gets its value.
func (t *Topic[T]) Publish(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, publish[T]{t, v}, false)
	return err
}

// PublishOp is Publish as an Op.
func (t *Topic[T]) PublishOp(v T) suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&publish[T]{t, v})
}

// Close says that no more values will be published. The values in the buffers can still be received, and publishers that wait get
// ErrClosed. A second Close changes nothing and returns ErrClosed. It never suspends.
func (t *Topic[T]) Close() error {
	t.guard.Lock()
	defer t.guard.Unlock()
	if t.closed {
		return ErrClosed
	}
	t.closed = true
	for t.subs.First() != nil {
		t.subs.First().Value.endLocked(ErrClosed)
	}
	t.publishers.ResumeAll(struct{}{}, ErrClosed)
	return nil
}

// passLocked pays the debt of a change that has made room.
func (t *Topic[T]) passLocked() {
	for t.full == 0 {
		v, ok := t.publishers.Resume(struct{}{}, nil)
		if !ok {
			return
		}
		t.publishLocked(v)
	}
}

// publishLocked gives v to all subscriptions. Each subscription of Wait must have room.
func (t *Topic[T]) publishLocked(v T) {
	for at := t.subs.First(); at != nil; {
		s := at.Value
		at = at.Next()
		s.giveLocked(v)
	}
}

// A publish is the Source of Publish and PublishOp.
type publish[T any] struct {
	*Topic[T]
	v T
}

func (p publish[T]) Guard() *suspend.Guard               { return &p.guard }
func (p publish[T]) Enqueue(r suspend.Resumer[struct{}]) { p.publishers.Push(r, p.v) }
func (p publish[T]) Remove(r suspend.Resumer[struct{}])  { p.publishers.Remove(r) }

func (p publish[T]) Try() (none struct{}, ok bool, err error) {
	switch {
	case p.closed:
		return none, true, ErrClosed
	case p.full > 0:
		return none, false, nil
	}
	p.publishLocked(p.v)
	return none, true, nil
}

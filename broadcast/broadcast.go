// Package broadcast passes every published value to all subscribers.
//
// A channel passes each value to one receiver. A publisher with one channel for each subscriber must wait for the slowest subscriber, or
// drop values. A subscriber that no longer receives blocks the publisher forever. In this package each subscription has a buffer, and a
// policy for a full buffer:
//
//	news := broadcast.New[string]()
//	...
//	sub := news.Subscribe(16, broadcast.DropOldest)
//	defer sub.Close()
//	for headline, err := range sub.All(ctx) {
//		if err != nil {
//			return err // ctx is done; after a Close, the loop ends
//		}
//		show(headline)
//	}
//
// A Topic is like the broadcast channel of tokio, whose Lagged is the policy Lag, and the SharedFlow of kotlinx.coroutines. If Publish
// succeeds, all current subscribers get the value. If Publish fails, no subscriber gets it.
//
// Use package watch if only the latest value matters, and package chanx if each value is for one receiver.
package broadcast

import (
	"context"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a Publish on a closed Topic, and of a second Close of a Topic or a Subscription. Recv also returns ErrClosed, if
// the buffer is empty and the Topic or the Subscription is closed.
var ErrClosed = outcome.Named("broadcast: closed", suspend.ErrClosed)

// A Topic passes published values to its subscriptions. All subscriptions get the values in the same order. If a Topic has no
// subscriptions, its values are dropped. The zero Topic is open and has no subscriptions. A Topic must not be copied.
type Topic[T any] struct {
	// The field full is the number of subscriptions with the policy Wait whose buffers are full. -P> is a Publish, -R> a Recv or a
	// Subscription's Close.
	//
	//	full == 0 -P> each subscription gets the value; full is computed again
	//	full > 0  -P> the Publish waits
	//	full > 0  -R> full-1   at 0, the values of waiting publishers are published until full is above 0 again
	//
	// Invariant: publishers wait only while full > 0. A subscription with waiting receivers has an empty buffer. A closed Topic has no
	// waiting publishers.
	// Debt: a task whose change brings t.full to 0 must publish the values of waiting publishers. Otherwise the publishers would wait
	// although every buffer has room.

	guard      suspend.Guard // protects the subscriptions, too
	closed     bool
	full       int
	open       int // the number of subs
	subs       dlist.List[*Subscription[T]]
	publishers suspend.Queue[struct{}, T]
}

// New returns an open Topic.
func New[T any]() *Topic[T] { return new(Topic[T]) }

// Publish passes v to all subscriptions. It suspends the caller while the buffer of a subscription with the policy Wait is full, or an
// earlier Publish waits. If ctx is done before the call or during the wait, Publish returns the cancellation error. If t is closed before
// the call or during the wait, Publish returns ErrClosed. After an error, no subscription gets v. If the end of the wait races with the
// cancellation, either may win.
//
// A Publish synchronizes before the return of each Recv that gets its value.
func (t *Topic[T]) Publish(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, publish[T]{t, v})
	return err
}

// PublishOp returns an Op that performs Publish.
func (t *Topic[T]) PublishOp(v T) suspend.Op[struct{}] {
	return suspend.OpOf[struct{}](&publish[T]{t, v})
}

// Close closes t, so that no more values can be published. The values in the buffers can still be received, and waiting publishers get
// ErrClosed. A second Close changes nothing and returns ErrClosed. Close never suspends.
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

// Subscribers returns the number of subscriptions that have not ended. A publisher can skip the making of values that nobody receives. The
// number may have changed by the time Subscribers returns.
func (t *Topic[T]) Subscribers() (n int) {
	t.guard.Lock()
	defer t.guard.Unlock()
	return t.open
}

// passLocked publishes the values of waiting publishers until t.full is above 0. Call passLocked after every change that frees room in a
// buffer. The caller must hold t.guard.
func (t *Topic[T]) passLocked() {
	for t.full == 0 {
		v, ok := t.publishers.Resume(struct{}{}, nil)
		if !ok {
			return
		}
		t.publishLocked(v)
	}
}

// publishLocked passes v to all subscriptions. The caller must hold t.guard, and t.full must be 0.
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

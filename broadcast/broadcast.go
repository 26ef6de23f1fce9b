// Package broadcast passes each value to all subscribers.
//
// A channel hands each value to one receiver. A loop over a channel for each subscriber blocks at the slowest one, or at one that has
// gone, or drops values with a default. Here each subscription has a buffer, and a policy for the time when it is full:
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
	"errors"
	"iter"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a Publish after the Close of its Topic, and of a Recv when no value is left and none will come.
var ErrClosed = outcome.Named("broadcast: closed", suspend.ErrClosed)

// ErrSlow is the error of a Recv by a subscription that was dropped because it was full. The values before that have been received.
// Subscribe again to go on with later values.
var ErrSlow = errors.New("broadcast: dropped a slow subscriber")

// A Policy decides about a value for which a subscription has no room.
type Policy int

const (
	Wait           Policy = iota // Publish waits for room
	DropOldest                   // the oldest value in the buffer gives way
	DropSubscriber               // the subscription ends with ErrSlow
)

// A Topic passes the values that are published on to its subscriptions, in the same order to all. The zero Topic is open and has no
// subscribers, and a value without subscribers is dropped. A Topic must not be copied.
type Topic[T any] struct {
	// -P> is a Publish, -R> a Recv, or a Close of a subscription.
	//
	//	full == 0 -P> each subscription has the value; full counts those of Wait without further room
	//	full > 0  -P> wait
	//	full > 0  -R> full-1   at 0 the values of the first publishers are passed on, until full is above 0 again
	//
	// Invariant: publishers wait only while full is above 0. A subscription whose receivers wait has an empty buffer. A closed
	// Topic has no publishers.
	// Debt: a change that takes full to 0 passes on the values that wait.

	guard      suspend.Guard // of the subscriptions as well
	closed     bool
	full       int
	subs       dlist.List[*Subscription[T]]
	publishers suspend.Queue[struct{}, T]
}

// A Subscription receives the values that are published after Subscribe. Several tasks may receive, and each value goes to one of them.
type Subscription[T any] struct {
	topic     *Topic[T]
	at        dlist.Node[*Subscription[T]]
	policy    Policy
	ring      []T
	first     int
	stored    int
	missed    uint64
	err       error // no more values will come
	receivers suspend.Queue[T, struct{}]
}

// New returns an open Topic.
func New[T any]() *Topic[T] { return new(Topic[T]) }

// Subscribe returns a subscription with room for n values that it has not received. If t is closed, it ends at once. Subscribe panics if n
// is less than 1. It never suspends.
func (t *Topic[T]) Subscribe(n int, policy Policy) *Subscription[T] {
	if n < 1 {
		panic("broadcast: Subscribe without room")
	}
	s := &Subscription[T]{topic: t, policy: policy, ring: make([]T, n)}
	s.at.Value = s
	t.guard.Lock()
	defer t.guard.Unlock()
	if t.closed {
		s.err = ErrClosed
	} else {
		t.subs.Push(&s.at)
	}
	return s
}

// Publish passes v on to all subscriptions. It suspends the caller as long as one of the policy Wait has no room, and behind publishers that
// came before. If ctx is done first, or already, Publish returns the cancellation error. If t is closed first, or already, it returns
// ErrClosed. In both cases no subscription has v. If the last room and the cancellation meet, one of them wins.
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

// Recv receives the oldest value in the buffer. It suspends the caller until there is one. Without one, it returns ErrClosed if t or s is
// closed, and ErrSlow if s was dropped. If ctx is done first, or already, it returns the cancellation error and has taken nothing. If a
// value and the cancellation meet, one of them wins.
func (s *Subscription[T]) Recv(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*recv[T])(s), false)
}

// RecvOp is Recv as an Op.
func (s *Subscription[T]) RecvOp() suspend.Op[T] { return suspend.OpOf[T]((*recv[T])(s)) }

// All receives, one value per step, until Recv fails. Afterwards Recv tells why.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			v, err := s.Recv(ctx)
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// Missed returns the number of values that DropOldest has dropped.
func (s *Subscription[T]) Missed() uint64 {
	s.topic.guard.Lock()
	defer s.topic.guard.Unlock()
	return s.missed
}

// Close ends the subscription. The values in its buffer are dropped, and receivers that wait get ErrClosed. A publisher that waits for s
// goes on. A second Close changes nothing. It never suspends.
func (s *Subscription[T]) Close() {
	t := s.topic
	t.guard.Lock()
	defer t.guard.Unlock()
	s.endLocked(ErrClosed)
	s.err = ErrClosed // also after ErrSlow
	clear(s.ring)
	s.stored = 0
	t.passLocked()
}

// endLocked takes s off its Topic.
func (s *Subscription[T]) endLocked(err error) {
	if s.topic.subs.Remove(&s.at) {
		if s.fullLocked() {
			s.topic.full--
		}
		s.err = err
		var none T
		s.receivers.ResumeAll(none, err)
	}
}

// fullLocked reports whether publishers wait for s.
func (s *Subscription[T]) fullLocked() bool { return s.policy == Wait && s.stored == len(s.ring) }

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

// publishLocked gives v to all subscriptions. Each of Wait has room.
func (t *Topic[T]) publishLocked(v T) {
	for at := t.subs.First(); at != nil; {
		s := at.Value
		at = at.Next()
		s.giveLocked(v)
	}
}

func (s *Subscription[T]) giveLocked(v T) {
	if _, ok := s.receivers.Resume(v, nil); ok {
		return
	}
	if s.stored == len(s.ring) {
		if s.policy == DropSubscriber {
			s.endLocked(ErrSlow)
			return
		}
		s.takeLocked()
		s.missed++
	}
	s.ring[(s.first+s.stored)%len(s.ring)] = v
	if s.stored++; s.fullLocked() {
		s.topic.full++
	}
}

func (s *Subscription[T]) takeLocked() (v T) {
	v, s.ring[s.first] = s.ring[s.first], v
	s.first = (s.first + 1) % len(s.ring)
	s.stored--
	return v
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

// A recv is the Source of Recv and RecvOp.
type recv[T any] Subscription[T]

func (r *recv[T]) Guard() *suspend.Guard        { return &r.topic.guard }
func (r *recv[T]) Enqueue(w suspend.Resumer[T]) { r.receivers.Push(w, struct{}{}) }
func (r *recv[T]) Remove(w suspend.Resumer[T])  { r.receivers.Remove(w) }

func (r *recv[T]) Try() (v T, ok bool, err error) {
	s := (*Subscription[T])(r)
	if s.stored == 0 {
		return v, s.err != nil, s.err
	}
	if s.fullLocked() && s.err == nil {
		s.topic.full--
	}
	v = s.takeLocked()
	s.topic.passLocked()
	return v, true, nil
}

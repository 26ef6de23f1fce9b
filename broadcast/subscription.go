package broadcast

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// ErrSlow is the error of a Recv on a subscription that was dropped because its buffer was full. Recv first returns the values in the
// buffer, and then ErrSlow. Subscribe again to receive later values.
var ErrSlow = errors.New("broadcast: subscription dropped because its buffer was full")

// A LaggedError is the error of a Recv on a subscription with the policy Lag, whose buffer was full. It is received once, in the place of
// the values that are lost: call Recv again to receive the values after them.
type LaggedError struct {
	Missed uint64 // the number of values that were dropped here
}

// Error implements error.
func (e *LaggedError) Error() string {
	return fmt.Sprintf("broadcast: missed values: %d", e.Missed)
}

// A Policy decides what happens to a value when the buffer of a subscription is full.
type Policy int

const (
	Wait           Policy = iota // Publish waits until the buffer has room
	DropOldest                   // the oldest value in the buffer is dropped
	DropSubscriber               // the subscription ends with ErrSlow
	Lag                          // as DropOldest, but the next Recv returns a *LaggedError
)

// A Subscription receives the values that are published after Subscribe. Several tasks may receive from a Subscription, but each value goes
// to only one task.
type Subscription[T any] struct {
	topic     *Topic[T]
	at        dlist.Node[*Subscription[T]]
	policy    Policy
	ring      []T
	first     int
	stored    int
	gap       uint64 // the number of values dropped since the last LaggedError, under the policy Lag
	err       error  // the reason why no more values are added, or nil
	closed    bool   // Close was called
	receivers suspend.Queue[T, struct{}]
}

// Subscribe returns a subscription with a buffer for n values. If t is closed, the subscription is closed, too. Subscribe panics if n is
// less than 1 or the policy is unknown. It never suspends.
func (t *Topic[T]) Subscribe(n int, policy Policy) *Subscription[T] {
	switch {
	case n < 1:
		panic("broadcast: Subscribe with a buffer for less than one value")
	case policy < Wait || policy > Lag:
		panic("broadcast: unknown Policy")
	}
	s := &Subscription[T]{topic: t, policy: policy, ring: make([]T, n)}
	s.at.Value = s
	t.guard.Lock()
	defer t.guard.Unlock()
	if t.closed {
		s.err = ErrClosed
	} else {
		t.subs.Push(&s.at)
		t.open++
	}
	return s
}

// Recv receives the oldest value in the buffer. It suspends the caller while the buffer is empty. If the buffer is empty, Recv returns
// ErrClosed if the topic or s is closed, and ErrSlow if s was dropped. Under the policy Lag, if values were dropped since the last
// *LaggedError, Recv returns a *LaggedError with their number, and the values after the gap stay in the buffer, as in tokio's broadcast
// channel. If ctx is done before the call or during the wait, Recv returns the cancellation error and receives nothing. If a Publish races
// with the cancellation, either may win.
func (s *Subscription[T]) Recv(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*recv[T])(s))
}

// RecvOp returns an Op that performs Recv.
func (s *Subscription[T]) RecvOp() suspend.Op[T] { return suspend.OpOf[T]((*recv[T])(s)) }

// All returns an iterator over received values, each with a nil error. Each step performs one Recv. After a Close of the topic or of s,
// when the buffer is empty, the loop ends. A LaggedError is a pair of its own, and the loop goes on after it. If Recv fails for another
// reason, the last pair has the error, and the zero T: the cancellation error, or ErrSlow. A loop without the second variable takes such
// pairs for received values; the command braidvet reports such loops.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := s.Recv(ctx)
			if err == ErrClosed || !yield(v, err) { // errors.Is would also match a ctx with the cause ErrClosed
				return
			}
			if _, lagged := err.(*LaggedError); err != nil && !lagged {
				return
			}
		}
	}
}

// Close ends the subscription. It drops the values in the buffer, and waiting receivers get ErrClosed. Publishers no longer wait for s. A
// second Close changes nothing and returns ErrClosed. Close never suspends.
func (s *Subscription[T]) Close() error {
	t := s.topic
	t.guard.Lock()
	defer t.guard.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.closed = true
	s.endLocked(ErrClosed)
	s.err = ErrClosed // replaces even ErrSlow
	clear(s.ring)
	s.stored, s.gap = 0, 0
	t.passLocked()
	return nil
}

// endLocked removes s from its Topic, if it is not yet removed, and resumes its receivers with err. The caller must hold the Topic's guard.
func (s *Subscription[T]) endLocked(err error) {
	if s.topic.subs.Remove(&s.at) {
		s.topic.open--
		if s.fullLocked() {
			s.topic.full--
		}
		s.err = err
		var none T
		s.receivers.ResumeAll(none, err)
	}
}

// fullLocked reports whether publishers must wait for s.
func (s *Subscription[T]) fullLocked() bool { return s.policy == Wait && s.stored == len(s.ring) }

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
		if s.policy == Lag {
			s.gap++
		}
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
	if s.gap > 0 {
		err, s.gap = &LaggedError{s.gap}, 0
		return v, true, err
	}
	if s.fullLocked() && s.err == nil {
		s.topic.full--
	}
	v = s.takeLocked()
	s.topic.passLocked()
	return v, true, nil
}

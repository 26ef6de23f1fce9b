// Package chanx provides a channel whose Send and Recv take a context, and return errors where Go's channels panic. Tasks of any scheduler
// can share a channel, and a Select can send and receive.
//
//	if err := jobs.Send(ctx, job); err != nil {
//		return err // ctx is done, or jobs is closed, and no receiver gets job
//	}
//
// This call replaces a select statement with a send and ctx.Done, and suspends only the calling task. Send returns nil if and only if a
// receiver has the value or the buffer stores it.
//
// Use a Go channel between goroutines where you need range, a select statement or time.After. Use a promise for a single value, and an
// mvar.MVar for a value that tasks take and put back.
package chanx

import (
	"context"
	"iter"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a send on a closed channel, of a receive from a closed and empty channel, and of a second Close. A receiver
// that gets ErrClosed should end its loop. After CloseWith, sends and receives return another error.
var ErrClosed = outcome.Named("chanx: closed", suspend.ErrClosed)

// A Chan passes values from senders to receivers. Senders and receivers are served in the order of their calls. A Chan buffers up to Cap
// values. If the capacity is 0, a send waits for a receive. The zero Chan is open and has a capacity of 0. A Chan must not be copied.
//
// A value is never lost or duplicated. Either the buffer stores it, or one receive has returned it, or its send has failed.
type Chan[T any] struct {
	//	-Send> a receiver waits: the first receiver that can be resumed gets the value
	//	       the buffer is not full: the value is stored
	//	       else wait
	//	-Recv> a value is stored: take the first value; store the value of the first sender that can be resumed
	//	       a sender waits: take the value of the first sender that can be resumed
	//	       c is closed: return c.end
	//	       else wait
	//
	// Invariant: if a waiter in c.senders can be resumed, the buffer is full. If a waiter in c.receivers can be resumed, the buffer is
	// empty. A closed channel has no waiters. With a capacity of 0 the buffer is both full and empty, so one Select may wait in both queues
	// of a channel. Such a Select cannot send to itself, because it tries all cases before it queues. A send or receive queues only if no
	// waiter can complete it.

	guard     suspend.Guard
	end       error // the error of sends and receives; nil while c is open
	ring      []T   // the buffer, of length Cap; its length never changes; an element without a value is zero
	first     int   // the index of the oldest value
	stored    int
	receivers suspend.Queue[T, struct{}]
	senders   suspend.Queue[struct{}, T]
	closings  *suspend.Queue[struct{}, struct{}] // waiters of AwaitClose; made by the first
}

// New returns a channel that buffers up to capacity values. It panics if capacity is negative.
func New[T any](capacity int) *Chan[T] {
	if capacity < 0 {
		panic("chanx: negative capacity")
	}
	return &Chan[T]{ring: make([]T, capacity)}
}

// Send sends v on c. It suspends the caller until a receiver takes v or the buffer stores it. If ctx is done before the call or during the
// wait, Send returns the cancellation error. If c is closed before the call or during the wait, Send returns ErrClosed, or the error given
// to CloseWith. After an error, v was not sent and still belongs to the caller. If the hand-over races with the cancellation, either may
// win.
//
// A Send synchronizes before the return of the Recv that gets its value. A Recv synchronizes before the return of the Send whose value it
// takes. If a Recv frees a place in the buffer, it also synchronizes before the return of the Send that fills this place.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	if c.buffered() {
		_, err := suspend.Wait[struct{}](ctx, send[T]{c, v})
		return err
	}
	_, err := suspend.WaitLazily[struct{}](ctx, send[T]{c, v})
	return err
}

// Recv receives the oldest value. It suspends the caller until a value is available. If c is closed and its buffer is empty, Recv returns
// ErrClosed, or the error given to CloseWith. If ctx is done before the call or during the wait, Recv returns the cancellation error and
// receives nothing. If a send races with the cancellation, either may win, but once a Recv has been handed a value, it returns this value,
// even if ctx ends before Recv returns. If Recv takes a value from a full buffer, the sender that has waited longest stores its value.
func (c *Chan[T]) Recv(ctx context.Context) (T, error) {
	if c.buffered() {
		return suspend.Wait[T](ctx, (*recv[T])(c))
	}
	return suspend.WaitLazily[T](ctx, (*recv[T])(c))
}

// TrySend sends v if that does not require waiting, and reports whether v was sent. If c is closed, TrySend returns the same error as Send.
// If c is full, TrySend returns false and a nil error. If the capacity is 0, TrySend succeeds only if a receiver waits. It never suspends.
func (c *Chan[T]) TrySend(v T) (ok bool, err error) {
	c.guard.Lock()
	ok, err = c.sendLocked(v)
	c.guard.Unlock()
	return ok && err == nil, err
}

// TryRecv receives a value if that does not require waiting, and reports whether it did. If c is closed and empty, TryRecv returns the same
// error as Recv. If c is empty but open, TryRecv returns false and a nil error. It never suspends.
func (c *Chan[T]) TryRecv() (v T, ok bool, err error) {
	c.guard.Lock()
	v, ok, err = c.recvLocked()
	c.guard.Unlock()
	return v, ok && err == nil, err
}

// SendOp returns an Op that performs Send.
func (c *Chan[T]) SendOp(v T) suspend.Op[struct{}] { return suspend.OpOf[struct{}](&send[T]{c, v}) }

// RecvOp returns an Op that performs Recv.
func (c *Chan[T]) RecvOp() suspend.Op[T] { return suspend.OpOf[T]((*recv[T])(c)) }

// AwaitClose suspends the caller until c is closed, and returns nil. It receives nothing: the buffer of a closed channel may still hold
// values. A producer can wait in this way until nobody needs its values any more, and a Send then returns the reason. If ctx is done
// before the call or during the wait, AwaitClose returns the cancellation error. If a Close races with the cancellation, either may win.
func (c *Chan[T]) AwaitClose(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, (*closing[T])(c))
	return err
}

// AwaitCloseOp returns an Op that performs AwaitClose.
func (c *Chan[T]) AwaitCloseOp() suspend.Op[struct{}] {
	return suspend.OpOf[struct{}]((*closing[T])(c))
}

// All returns an iterator over received values, each with a nil error. Each step performs one Recv. The iterator receives no value in
// advance, so a break leaves later values to other receivers.
//
// After a Close, when c is empty, the loop ends. If Recv fails for another reason, the last pair has the error, and the zero T: the
// cancellation error, or the error given to CloseWith. A loop without the second variable takes this pair for a received value; the
// command braidvet reports such loops.
//
//	for v, err := range c.All(ctx) {
//		if err != nil {
//			return err
//		}
//		…
//	}
func (c *Chan[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for {
			v, err := c.Recv(ctx)
			if err == ErrClosed || !yield(v, err) || err != nil { // errors.Is would also match a ctx with the cause ErrClosed
				return
			}
		}
	}
}

// Close closes c, so that no more values can be sent. Values in the buffer can still be received. The waiting receivers and then the
// waiting senders are resumed with ErrClosed, each in the order of their calls. The values of these senders are not sent. At last the
// waiters of AwaitClose are resumed, without an error. A second Close changes nothing and returns ErrClosed, so that only the caller that
// has closed c gets nil. Close never suspends. It synchronizes before the return of every call that returns ErrClosed, or the error given
// to CloseWith, and of every AwaitClose that returns nil.
//
// In Kotlin, close does not end a waiting send: the channel is closed only for later sends. Without a receiver, such a send would wait
// forever; with one, its value would still enter the buffer of a closed channel. Here no task waits on a closed channel. If a value must be
// received, call Close only after its Send has returned.
func (c *Chan[T]) Close() error { return c.CloseWith(ErrClosed) }

// CloseWith closes c like Close, but sends and receives return err in place of ErrClosed. Use it for a stream that has failed before its
// end. Receivers first get the values in the buffer. If err is nil, CloseWith is the same as Close.
func (c *Chan[T]) CloseWith(err error) error {
	if err == nil {
		err = ErrClosed
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.end != nil {
		return ErrClosed
	}
	c.end = err
	var none T
	c.receivers.ResumeAll(none, err) // a waiter that cannot be resumed was cancelled
	c.senders.ResumeAll(struct{}{}, err)
	if c.closings != nil {
		c.closings.ResumeAll(struct{}{}, nil)
	}
	return nil
}

// Len returns the number of values in the buffer, which may have changed by the time Len returns.
func (c *Chan[T]) Len() int {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.stored
}

// sendLocked sends v, or returns c.end if c is closed. It returns false if the caller must wait. The caller must hold c.guard.
func (c *Chan[T]) sendLocked(v T) (ok bool, err error) {
	if c.end != nil {
		return true, c.end
	}
	if _, ok := c.receivers.Resume(v, nil); ok {
		return true, nil
	}
	if c.stored == len(c.ring) {
		return false, nil
	}
	c.storeLocked(v)
	return true, nil
}

// recvLocked receives a value, or returns c.end if c is closed and empty. It returns false if the caller must wait. The caller must hold
// c.guard.
func (c *Chan[T]) recvLocked() (v T, ok bool, err error) {
	next, sent := c.senders.Resume(struct{}{}, nil) // the buffer is full if sent is true
	switch {
	case c.stored > 0:
		v, c.ring[c.first] = c.ring[c.first], v
		c.first = c.wrap(c.first + 1)
		c.stored--
		if sent {
			c.storeLocked(next)
		}
		return v, true, nil
	case sent:
		return next, true, nil
	case c.end != nil:
		return v, true, c.end
	}
	return v, false, nil
}

func (c *Chan[T]) storeLocked(v T) {
	c.ring[c.wrap(c.first+c.stored)] = v
	c.stored++
}

// buffered reports whether c has a buffer. Waits may be cancelled lazily only if it has none. The caller need not hold c.guard.
func (c *Chan[T]) buffered() bool { return len(c.ring) > 0 }

func (c *Chan[T]) wrap(i int) int {
	if i >= len(c.ring) {
		i -= len(c.ring)
	}
	return i
}

// A send is the Source of Send and SendOp.
type send[T any] struct {
	*Chan[T]
	v T
}

func (s send[T]) Guard() *suspend.Guard               { return &s.guard }
func (s send[T]) Enqueue(r suspend.Resumer[struct{}]) { s.senders.Push(r, s.v) }
func (s send[T]) Remove(r suspend.Resumer[struct{}])  { s.senders.Remove(r) }

func (s send[T]) Try() (none struct{}, ok bool, err error) {
	ok, err = s.sendLocked(s.v)
	return none, ok, err
}

// A recv is the Source of Recv and RecvOp.
type recv[T any] Chan[T]

func (r *recv[T]) Guard() *suspend.Guard          { return &r.guard }
func (r *recv[T]) Try() (v T, ok bool, err error) { return (*Chan[T])(r).recvLocked() }
func (r *recv[T]) Enqueue(w suspend.Resumer[T])   { r.receivers.Push(w, struct{}{}) }
func (r *recv[T]) Remove(w suspend.Resumer[T])    { r.receivers.Remove(w) }

// A closing is the Source of AwaitClose and AwaitCloseOp.
type closing[T any] Chan[T]

func (w *closing[T]) Guard() *suspend.Guard                        { return &w.guard }
func (w *closing[T]) Try() (none struct{}, closed bool, err error) { return none, w.end != nil, nil }
func (w *closing[T]) Remove(r suspend.Resumer[struct{}])           { w.closings.Remove(r) }

func (w *closing[T]) Enqueue(r suspend.Resumer[struct{}]) {
	if w.closings == nil {
		w.closings = new(suspend.Queue[struct{}, struct{}])
	}
	w.closings.Push(r, struct{}{})
}

// Package chanx provides a channel whose sends and receives can be cancelled, selected and shared between schedulers: Go's channel,
// with a context, and with errors in place of panics.
//
//	if err := jobs.Send(ctx, job); err != nil {
//		return err // ctx is done, or jobs is closed: no receiver has seen job
//	}
//
// replaces a select of a send and ctx.Done, and suspends only the calling task. A send returns nil exactly if its value has been
// received or is in the buffer.
//
// Use a channel between goroutines where range, native select or time.After is the natural code. Use a promise for a value that
// arrives once, and an mvar.MVar for a value that changes hands.
package chanx

import (
	"context"
	"iter"

	"github.com/braidgo/braid/internal/outcome"
	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a send on a closed channel, of a receive from a channel that is closed and empty, and of a second Close. A
// receiver ends its loop then. CloseWith gives sends and receives another error.
var ErrClosed = outcome.Named("chanx: closed", suspend.ErrClosed)

// A Chan passes values from senders to receivers, first come first served on both sides. It holds up to Cap values that were sent
// and not yet received. With a capacity of 0, a send and a receive meet. The zero Chan is open and has a capacity of 0. A Chan must not
// be copied.
//
// A value is never lost nor doubled. It is in the buffer, with the receive that returned it, or with the send that failed.
type Chan[T any] struct {
	//	-Send> a receiver waits: the first that can be resumed gets the value
	//	       there is room: the value is stored
	//	       else wait
	//	-Recv> a value is stored: take the first; the value of the first sender that can be resumed is stored
	//	       a sender waits: take the value of the first that can be resumed
	//	       closed: the error of the close
	//	       else wait
	//
	// Invariant: a waiter in senders that can be resumed waits because the buffer is full, one in receivers because it is empty. A
	// closed channel has no waiters. With a capacity of 0 the buffer is both, and a Select may be in both queues of one
	// channel. It does not meet itself, as it looks before it queues. A send or a receive that comes leaves no waiter that
	// it could meet.

	guard     suspend.Guard
	end       error // sends and receives return it; nil while c is open
	buffered  bool  // never changes; if false, every wait is sure to be met, and may be cancelled lazily
	ring      []T   // has the capacity's length; a place without a value is zero
	first     int   // the index of the first value stored
	stored    int
	receivers suspend.Queue[T, struct{}]
	senders   suspend.Queue[struct{}, T]
}

// New returns a channel that holds up to capacity values. It panics if capacity is negative.
func New[T any](capacity int) *Chan[T] {
	if capacity < 0 {
		panic("chanx: negative capacity")
	}
	return &Chan[T]{ring: make([]T, capacity), buffered: capacity > 0}
}

// Send sends v. It suspends the caller until a receiver takes v or there is room in the buffer. If ctx is done first, or already, Send
// returns the cancellation error. If c is closed first, or already, it returns ErrClosed, or the error of CloseWith. In both cases the
// channel has not seen v, which is still the caller's. If the hand-over and the cancellation meet, either may win.
//
// A Send synchronizes before the return of the Recv that gets its value. A Recv synchronizes before the return of the Send that it
// takes the value of or makes room for.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, send[T]{c, v}, !c.buffered)
	return err
}

// Recv receives the oldest value. It suspends the caller until there is one. If c is closed and its buffer is empty, Recv returns
// ErrClosed, or the error of CloseWith. If ctx is done first, or already, Recv returns the cancellation error and has taken nothing. If a
// value and the cancellation meet, either may win, but a value that was handed to a Recv is returned by it. A Recv that makes room lets
// the longest waiting sender store its value.
func (c *Chan[T]) Recv(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*recv[T])(c), !c.buffered)
}

// TrySend sends v if it need not wait, and reports whether it did. The error is the error of Send if c is closed, but nil if c is full. With a
// capacity of 0 it succeeds if a receiver waits. It never suspends.
func (c *Chan[T]) TrySend(v T) (ok bool, err error) {
	c.guard.Lock()
	ok, err = c.sendLocked(v)
	c.guard.Unlock()
	return ok && err == nil, err
}

// TryRecv receives a value if it need not wait, and reports whether it did. The error is the error of Recv if c is closed and empty, but nil
// if more may come. It never suspends.
func (c *Chan[T]) TryRecv() (v T, ok bool, err error) {
	c.guard.Lock()
	v, ok, err = c.recvLocked()
	c.guard.Unlock()
	return v, ok && err == nil, err
}

// SendOp is Send as an Op.
func (c *Chan[T]) SendOp(v T) suspend.Op[struct{}] { return suspend.OpOf[struct{}](&send[T]{c, v}) }

// RecvOp is Recv as an Op.
func (c *Chan[T]) RecvOp() suspend.Op[T] { return suspend.OpOf[T]((*recv[T])(c)) }

// All receives, one value per step, until c is closed and empty or ctx is done. The caller suspends as it does in Recv. Nothing is
// received ahead: after a break, the other values are for the next receiver.
//
// Afterwards ask ctx: if it is not done, c was closed. If both have happened, the loop may have ended for either reason. Call Recv to
// distinguish them. (With a second variable for the error, code that leaves it out would take zero values for received values.)
//
//	for v := range c.All(ctx) {
//		…
//	}
//	return suspend.Err(ctx)
func (c *Chan[T]) All(ctx context.Context) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			v, err := c.Recv(ctx)
			if err != nil || !yield(v) {
				return
			}
		}
	}
}

// Close says that no more values will be sent. Values in the buffer can still be received. All waiters are resumed with ErrClosed, in
// order, receivers before senders, and the value of such a send has not been sent. A second Close changes nothing and returns
// ErrClosed, so that each of several callers learns whether it has closed c. Close never suspends. It synchronizes before the return of
// every call that returns ErrClosed.
//
// In Kotlin a waiting sender survives, as close is like one more value behind all others. Such a Close does not end a Send, which waits
// without end once there is no receiver, and the buffer of a closed channel goes on filling. Here no task waits on a closed channel.
// A sender whose value must be received sends it before it closes.
func (c *Chan[T]) Close() error { return c.CloseWith(ErrClosed) }

// CloseWith is Close, with err in place of ErrClosed for all sends and receives: a stream that has failed, and has not come to its end.
// Receivers get the values in the buffer first. With a nil err it is Close.
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
	c.receivers.ResumeAll(none, err) // a refused waiter was cancelled, and is owed nothing
	c.senders.ResumeAll(struct{}{}, err)
	return nil
}

// Len returns the number of values in the buffer, which may have changed by the time it returns.
func (c *Chan[T]) Len() int {
	c.guard.Lock()
	defer c.guard.Unlock()
	return c.stored
}

// Cap returns the capacity.
func (c *Chan[T]) Cap() int { return len(c.ring) }

// sendLocked sends v, or finds c closed: err is the end. It reports false if the caller has to wait.
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

// recvLocked receives a value, or finds c closed and empty: err. It reports false if the caller has to wait.
func (c *Chan[T]) recvLocked() (v T, ok bool, err error) {
	next, sent := c.senders.Resume(struct{}{}, nil) // true means that the buffer is full
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

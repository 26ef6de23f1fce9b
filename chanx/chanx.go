// Package chanx provides a channel whose sends and receives can be cancelled, selected and shared between schedulers:
// Go's channel, with a context and with errors in place of panics.
package chanx

import (
	"context"
	"errors"
	"iter"

	"github.com/braidgo/braid/suspend"
)

// ErrClosed is the error of a send on a closed channel, of a receive from one that is closed and empty, and of a
// second Close.
var ErrClosed = errors.New("chanx: closed")

// A Chan passes values from senders to receivers, first come first served on both sides. It holds up to Cap values
// that were sent and are not yet received; with a capacity of 0 a send and a receive meet. It is made by New; the zero
// Chan is open and has a capacity of 0. It must not be copied.
//
// A send returns nil exactly if its value has been received or is in the buffer. A value is never lost nor doubled:
// it is in the buffer, with the one receive that returned it, or with the send that failed.
//
//	-Send> a receiver waits: the first that can be resumed gets the value
//	       there is room: the value is stored
//	       else wait
//	-Recv> something is stored: take the first; the value of the first sender that can be resumed is stored
//	       a sender waits: take the value of the first that can be resumed
//	       closed: ErrClosed
//	       else wait
//
// Invariant: who waits in senders and can be resumed waits since the buffer is full, who waits in receivers and can
// be resumed, since it is empty; once the channel is closed, nobody waits. With a capacity of 0 both are so at once:
// a Select may be in both queues of one channel. It does not meet itself, as it looks before it queues, nor does a
// send or a receive that comes leave anybody waiting whom it could meet.
type Chan[T any] struct {
	guard     suspend.Guard
	closed    bool
	buffered  bool // never changes; if not, every wait is for somebody who is sure to come, and may be cancelled lazily
	ring      []T  // as long as the capacity; what holds no value is zero
	first     int  // the index of the first value stored
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

// Send sends v, suspending the caller until a receiver takes it or there is room in the buffer. If ctx is done first,
// or already, Send returns the error of the cancellation; if c is closed first, or already, ErrClosed. Either way the
// channel has not seen v, which is still the caller's. If v is taken and ctx is done at once, one of them wins, and
// Send returns nil exactly if v is taken or stored.
//
// A Send synchronizes before the return of the Recv that gets its value, and a Recv before the return of the Send
// that it takes the value of or makes room for.
func (c *Chan[T]) Send(ctx context.Context, v T) error {
	_, err := suspend.Wait[struct{}](ctx, send[T]{c, v}, !c.buffered)
	return err
}

// Recv receives the value that was sent first, suspending the caller until there is one. Once c is closed and its
// buffer empty, Recv returns ErrClosed. If ctx is done first, or already, Recv returns the error of the cancellation
// and has taken nothing. If a value arrives and ctx is done at once, one of them wins; a value that has been handed to
// a Recv is returned by it. A Recv that makes room lets the sender that has waited longest store its value.
func (c *Chan[T]) Recv(ctx context.Context) (T, error) {
	return suspend.Wait[T](ctx, (*recv[T])(c), !c.buffered)
}

// TrySend sends v if that takes no waiting, and reports whether it did; err is ErrClosed if c is closed, nil if it is
// full. With a capacity of 0 it succeeds if somebody waits to receive. It never suspends.
func (c *Chan[T]) TrySend(v T) (ok bool, err error) {
	c.guard.Lock()
	ok, err = c.sendLocked(v)
	c.guard.Unlock()
	return ok && err == nil, err
}

// TryRecv receives a value if that takes no waiting, and reports whether it did; err is ErrClosed if c is closed and
// empty, nil if more may come. It never suspends.
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

// All receives, one value per step, until c is closed and empty or ctx is done; the caller suspends as it does in
// Recv. Nothing is received ahead: after a break, what is left is for the next receiver.
//
// Afterwards ctx tells which it was: not done, and c was closed. If both have come to pass, the loop may have ended for
// either reason; who must know calls Recv. (A second variable for the error would be zero values taken for received
// ones wherever it is left out.)
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

// Close says that no more values will be sent. What is in the buffer can still be received. Who waits, on either
// side, is resumed with ErrClosed, in the order in which they came, receivers before senders; the value of such a send
// has not been sent. A second Close changes nothing and returns ErrClosed, so that of several that may close, each can
// tell whether it did. Close never suspends. It synchronizes before the return of whatever returns ErrClosed.
//
// In Kotlin a sender that waits survives: close is like one more value, behind all that are there. But then a Close
// does not end a Send, which waits for ever once the receivers have gone, and the buffer of a closed channel goes on
// filling. Here nobody waits on a closed channel, and whoever needs the value received sends it before closing.
func (c *Chan[T]) Close() error {
	c.guard.Lock()
	defer c.guard.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.closed = true
	var none T
	c.receivers.ResumeAll(none, ErrClosed) // who says false was cancelled, and is owed nothing
	c.senders.ResumeAll(struct{}{}, ErrClosed)
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

// sendLocked sends v, or finds c closed: err. It reports false if the caller has to wait.
func (c *Chan[T]) sendLocked(v T) (ok bool, err error) {
	if c.closed {
		return true, ErrClosed
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
	next, sent := c.senders.Resume(struct{}{}, nil) // if so, the buffer is full
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
	case c.closed:
		return v, true, ErrClosed
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

// A send is what Send and SendOp perform.
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

// A recv is what Recv and RecvOp perform.
type recv[T any] Chan[T]

func (r *recv[T]) Guard() *suspend.Guard          { return &r.guard }
func (r *recv[T]) Try() (v T, ok bool, err error) { return (*Chan[T])(r).recvLocked() }
func (r *recv[T]) Enqueue(w suspend.Resumer[T])   { r.receivers.Push(w, struct{}{}) }
func (r *recv[T]) Remove(w suspend.Resumer[T])    { r.receivers.Remove(w) }

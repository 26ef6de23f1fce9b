package actor

import (
	"context"
	"reflect"
	"time"

	"github.com/braidgo/braid/suspend"
)

// An Actor is a Ref for messages of any type. It can be stopped, killed, watched and waited for.
type Actor interface {
	// Stop closes the mailbox. The actor can still receive its mail. After that its waits return ErrStopped, and it ends when it has
	// stopped its children and they have ended.
	Stop()

	// Kill cancels the actor's context with cause, and ends the actor at its next wait. A wait for a message ends even if there are
	// messages, and even if it uses another context. Any other wait ends only if it uses the actor's context. Only the first Kill sets
	// the cause. An actor that was killed does not wait for its children.
	Kill(cause error)

	// Wait suspends the caller until the actor has ended. It returns the error with which the actor ended: nil if it was done or
	// stopped, or the cause itself if it was killed. By then, Options.Dead has been called with all its dead letters, and all its
	// descendants have ended, unless the actor was killed. If ctx is already done, or is done first, Wait returns the error of the
	// cancellation.
	//
	// An actor cannot wait for its own end, or for the end of an ancestor. If ctx is the actor's context, or derived from it, Wait
	// returns an error at once, even after context.WithoutCancel or on another goroutine. A goroutine that needs such a wait must use
	// an unrelated context.
	Wait(ctx context.Context) error

	// WaitOp returns an Op that waits until the actor has ended. Its value is the actor's error. Unlike Wait, WaitOp does not detect a
	// wait for an ancestor: a child must not wait for its parent, because neither would end.
	WaitOp() suspend.Op[error]

	// Done returns a channel that is closed when the actor has ended.
	Done() <-chan struct{}

	lifeOf() *life
}

// A target is the mailbox behind a Ref.
type target[M any] interface {
	send(m M) error // like post, with the request in m
	post(m M, q pending, forced bool) error
	sendOp(m M, q pending) suspend.Op[struct{}]
	requestOf(m M) pending
	lifeOf() *life
}

// A Ref is the address of an actor. It may be copied, compared, sent in messages and used by any goroutine, wherever the actor runs.
// The zero Ref is the address of an actor that has ended.
//
// Messages from one sender to one actor arrive in the order in which they were sent. All messages in a mailbox have one order, which is
// fixed before Send returns. So a message never arrives before a message that caused it.
type Ref[M any] struct{ to target[M] }

// Send puts m into the mailbox and never waits. If Send returns nil, m is accepted: it will either be received or become a dead letter,
// and only once. If Send returns ErrEnded or ErrFull, m is not accepted. If m embeds a Request, the actor becomes its home.
func (r Ref[M]) Send(m M) error {
	if r.to == nil {
		return ErrEnded
	}
	return r.to.send(m)
}

// SendOp returns an Op that sends m, and waits while the mailbox is full. Waiting senders are served in the order of their arrival.
func (r Ref[M]) SendOp(m M) suspend.Op[struct{}] {
	if r.to == nil {
		return suspend.Map(suspend.After(0), func(time.Time, error) (v struct{}, err error) { return v, ErrEnded })
	}
	return r.to.sendOp(m, r.to.requestOf(m))
}

// SendWait puts m into the mailbox, and suspends the caller while the mailbox is full. If ctx is already done, or is done first,
// SendWait returns the error of the cancellation, and m is not accepted.
func (r Ref[M]) SendWait(ctx context.Context, m M) error {
	_, err := suspend.Do(ctx, r.SendOp(m))
	return err
}

// Stop implements Actor.
func (r Ref[M]) Stop() {
	if r.to != nil {
		r.to.lifeOf().stop()
	}
}

// Kill implements Actor.
func (r Ref[M]) Kill(cause error) {
	if r.to != nil {
		r.to.lifeOf().kill(cause)
		r.to.lifeOf().cutEnd()
	}
}

// Wait implements Actor.
func (r Ref[M]) Wait(ctx context.Context) error { return r.lifeOf().wait(ctx) }

// WaitOp implements Actor.
func (r Ref[M]) WaitOp() suspend.Op[error] { return r.lifeOf().waitOp() }

// Done implements Actor.
func (r Ref[M]) Done() <-chan struct{} { return r.lifeOf().done() }

// nobody is the life of the zero Ref.
var nobody = life{state: ended, closed: true, over: true}

func (r Ref[M]) lifeOf() *life {
	if r.to == nil {
		return &nobody
	}
	return r.to.lifeOf()
}

// Adapt returns a Ref that takes messages of another type. For each message m, it sends f(m) to the actor of the original Ref. The
// sender calls f with no lock held. The other methods of the new Ref act on the same actor. f may put a request into another message,
// and may make a request from a message that is not a request.
func Adapt[N, M any](to Ref[M], f func(N) M) Ref[N] {
	if f == nil {
		panic("actor: Adapt with a nil function")
	}
	if to.to == nil {
		return Ref[N]{}
	}
	return Ref[N]{&adapted[N, M]{to.to, f}}
}

type adapted[N, M any] struct {
	target[M]
	f func(N) M
}

func (a *adapted[N, M]) send(m N) error { return a.post(m, a.requestOf(m), false) }

func (a *adapted[N, M]) post(m N, q pending, forced bool) error {
	to, q := a.adapt(m, q)
	return a.target.post(to, q, forced)
}

func (a *adapted[N, M]) sendOp(m N, q pending) suspend.Op[struct{}] {
	return a.target.sendOp(a.adapt(m, q))
}

// adapt returns f(m) and its request: q if m is a request, or else f(m) itself if it is a request.
func (a *adapted[N, M]) adapt(m N, q pending) (M, pending) {
	to := a.f(m)
	switch is := a.target.requestOf(to); {
	case q == nil:
		q = is
	case is == nil || is.call() != q.call():
		q = wrapped{q}
	}
	return to, q
}

func (a *adapted[N, M]) requestOf(m N) pending { return asRequest(m) }

// A wrapped is a request inside a message that is not itself the request.
type wrapped struct{ pending }

// asRequest returns m as a request, or nil if m is not a request or is a nil pointer.
func asRequest(m any) pending {
	q, ok := m.(pending)
	if !ok || isNil(m) {
		return nil
	}
	return q
}

func isNil(m any) bool {
	v := reflect.ValueOf(m)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

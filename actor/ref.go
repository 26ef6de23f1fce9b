package actor

import (
	"context"
	"reflect"
	"time"

	"github.com/braidgo/braid/suspend"
)

// An Actor is a Ref of any type, to stop, watch and wait for.
type Actor interface {
	// Stop closes the mailbox. Its mail can still be received; then waits return ErrStopped, and the actor ends. Before it ends, its
	// children are stopped and have ended.
	Stop()

	// Kill cancels the actor's context with cause, and ends it where it waits next. A wait for a message ends also if messages are
	// left and whatever context it waits with; other waits end by the actor's context. The first cause stays.
	Kill(cause error)

	// Wait suspends the caller until the actor has ended, and returns the error with which it did: nil if it was done or stopped, the
	// cause itself if it was killed. By then its dead letters are accounted for. If ctx is done first, or already, Wait
	// returns the error of the cancellation. An actor that waits for its own end, or for the end of an actor whose descendant it is,
	// gets an error at once if it waits with its context: it has to end first. Every context derived from that counts as its own, also by
	// context.WithoutCancel and on another goroutine. Such a goroutine waits with a context of other origin.
	Wait(ctx context.Context) error

	// WaitOp is Wait as an Op. Its value is the error of the actor. It does not detect its own end: a child must not wait for its parent, or neither ends.
	WaitOp() suspend.Op[error]

	// Done returns a channel that is closed when the actor has ended.
	Done() <-chan struct{}

	lifeOf() *life
}

// A target is the mailbox behind a Ref.
type target[M any] interface {
	send(m M) error // post of m and its request
	post(m M, q pending, forced bool) error
	sendOp(m M, q pending) suspend.Op[struct{}]
	requestOf(m M) pending
	stop()
	kill(cause error)
	lifeOf() *life
}

// A Ref is where messages are sent. It may be copied, compared, sent and used by any goroutine, and says nothing of where its actor
// runs. The zero Ref addresses an actor that has ended.
//
// Messages of one sender to one actor arrive in the order in which they were sent. All messages to an actor have one order, and a
// Send is over when it returns, so a message never arrives before its cause.
type Ref[M any] struct{ to target[M] }

// Send leaves m in the mailbox and never waits. If it returns nil, m is accepted: it will be received once, or be a dead letter once.
// ErrEnded and ErrFull say that it is not accepted. A message that embeds a Request belongs to this actor from now on.
func (r Ref[M]) Send(m M) error {
	if r.to == nil {
		return ErrEnded
	}
	return r.to.send(m)
}

// SendOp is a Send that waits for room in the mailbox, as an Op. Waiting senders are served in the order in which they came.
func (r Ref[M]) SendOp(m M) suspend.Op[struct{}] {
	if r.to == nil {
		return suspend.Map(suspend.After(0), func(time.Time, error) (v struct{}, err error) { return v, ErrEnded })
	}
	return r.to.sendOp(m, r.to.requestOf(m))
}

// SendWait leaves m in the mailbox, suspending the caller while the mailbox is full. If ctx is done first, or already, it returns the
// error of the cancellation, and m is not accepted.
func (r Ref[M]) SendWait(ctx context.Context, m M) error {
	_, err := suspend.Do(ctx, r.SendOp(m))
	return err
}

// Stop implements Actor.
func (r Ref[M]) Stop() {
	if r.to != nil {
		r.to.stop()
	}
}

// Kill implements Actor.
func (r Ref[M]) Kill(cause error) {
	if r.to != nil {
		r.to.kill(cause)
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

// Adapt returns a Ref for a part, or another form, of the messages of to. It sends f(m) to to for each m. f is called by the
// sender, under no lock. As an Actor, it is to. If m is a request, f(m) may wrap it; if m is none, f(m) may be one.
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

// adapt returns f(m) with its request: the request q of m, or f(m) itself if m is no request.
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

// A wrapped request is in a message that is not itself the request.
type wrapped struct{ pending }

// asRequest returns the request that m is, nil if it is none. A nil pointer is none.
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

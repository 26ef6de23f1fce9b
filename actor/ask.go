package actor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"weak"

	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Request is embedded in a message that expects a reply of type R:
//
//	type Get struct{ actor.Request[int] }
//
//	v, err := actor.Ask(ctx, counter, &Get{})
//
// The zero Request is ready for use in a single Ask. The home of a request is the actor to which it was sent last, by the Ask, or by a
// Send that passes the request on. If the home ends before the request is answered, the Ask returns ErrNoReply. The Ask also returns
// ErrNoReply if the home fails after it has received the request, even if a Catch handles the failure. An actor that passes a request
// to a goroutine remains the request's home.
type Request[R any] struct {
	asked call
	value R              // guarded by asked.guard, like the fields below; never changes after the answer
	err   error          // the answer's error
	to    func(R, error) // called with the answer if no Ask waits; set before the request is sent
}

// A Question is a message that embeds a Request[R], by pointer.
type Question[R any] interface{ request() *Request[R] }

func (q *Request[R]) request() *Request[R] { return q }

func (q *Request[R]) call() *call { return &q.asked }

func (q *Request[R]) kind() reflect.Type { return reflect.TypeFor[Request[R]]() }

// Reply answers the request with v. It returns false, without any effect, if the request has been answered or refused, if its home has
// ended, or if the Ask was cancelled. Reply synchronizes before the return of the Ask.
func (q *Request[R]) Reply(v R) bool { return q.resolve(v, nil) }

// Refuse is like Reply, but the Ask returns err.
func (q *Request[R]) Refuse(err error) bool {
	if err == nil {
		panic("actor: Refuse with a nil error")
	}
	return q.fail(err)
}

func (q *Request[R]) fail(err error) bool {
	var none R
	return q.resolve(none, err)
}

// resolve answers the request, unless it was answered before or was not asked.
func (q *Request[R]) resolve(v R, err error) bool {
	c := &q.asked
	c.guard.Lock()
	if c.phase.Load() != asked {
		c.guard.Unlock()
		return false
	}
	q.value, q.err = v, err
	c.phase.Store(answered)
	waiter := c.waiter
	c.waiter = suspend.Resumer[struct{}]{}
	waiter.Resume(struct{}{}, nil) // an Ask that does not wait yet, or was cancelled, checks c.phase itself
	c.guard.Unlock()
	c.home.Swap(nil).drop() // pairs with the second check of phase in adoptLocked
	if q.to != nil {
		q.to(v, err)
	}
	return true
}

// A reply is a call as the Source on which an Ask waits.
type reply call

func (r *reply) Guard() *suspend.Guard { return &r.guard }

func (r *reply) Try() (none struct{}, ok bool, err error) {
	return none, r.phase.Load() == answered, nil
}

func (r *reply) Enqueue(w suspend.Resumer[struct{}]) { r.waiter = w }

func (r *reply) Remove(suspend.Resumer[struct{}]) { r.waiter = suspend.Resumer[struct{}]{} }

// OwnedBy implements ledger.Owned: the home must reply.
func (r *reply) OwnedBy() ledger.Owner {
	ref := weak.Make((*call)(r))
	return ledger.Owner{Kind: r.first.q.kind(), Task: func() (int64, string) {
		if c := ref.Value(); c != nil {
			if e := c.home.Load(); e != nil {
				return e.at.task.Load(), e.at.name()
			}
		}
		return 0, ""
	}}
}

// Ask sends q to an actor, suspends the caller until there is a reply, and returns the reply. If the actor ends first, or has already
// ended, Ask returns an error that wraps ErrNoReply and the actor's error, if any. If ctx is already done, or is done first, Ask
// returns the error of the cancellation, and a later reply is dropped. Once Reply has returned true, Ask returns that reply, even if
// ctx is done by then. An Ask to the caller's own actor returns ErrNoReply at once, because it would wait for ever.
//
// Ask panics if q is nil, is not of the actor's message type, or was asked before.
func Ask[R, M any](ctx context.Context, to Ref[M], q Question[R]) (R, error) {
	var none R
	if err := suspend.Err(ctx); err != nil {
		return none, err
	}
	m, r := requestIn(to, q)
	if to.lifeOf().line {
		defer recordAsker(&r.asked)()
	}
	err := errSelf
	if !to.lifeOf().runsHere() {
		err = put(to, m, r)
	}
	if err != nil {
		r.asked.phase.CompareAndSwap(asked, fresh)
		return none, err
	}
	_, err = suspend.WaitLazily[struct{}](ctx, (*reply)(&r.asked))
	if err != nil && r.fail(err) {
		return none, err
	}
	return r.value, r.err
}

// AskLater is like Ask, but does not wait: it returns a future of the reply.
func AskLater[R, M any](to Ref[M], q Question[R]) promise.Future[R] {
	m, r := requestIn(to, q)
	answer := promise.New[R]()
	r.to = func(v R, err error) { answer.Resolve(v, err) }
	if err := put(to, m, r); err != nil {
		r.fail(err)
	}
	return answer
}

// errSelf is returned by an Ask to the caller's own actor, which would wait for itself.
var errSelf = noReply(errors.New("an actor waits for its own reply"))

// requestIn returns q as a message to the actor, and the request in q, which it marks as asked.
func requestIn[R, M any](to Ref[M], q Question[R]) (M, *Request[R]) {
	if q == nil || isNil(q) {
		panic("actor: Ask with a nil request")
	}
	m, ok := any(q).(M)
	if !ok {
		panic(fmt.Sprintf("actor: Ask with a %T, which is not a message type of %T", q, to))
	}
	r := q.request()
	if !r.asked.phase.CompareAndSwap(fresh, asked) {
		panic("actor: Ask with a request that was already used")
	}
	return m, r
}

// put sends m, which embeds r, to the actor.
func put[R, M any](to Ref[M], m M, r *Request[R]) error {
	if to.to == nil {
		return noReply(ErrEnded)
	}
	err := to.to.post(m, r, false)
	if errors.Is(err, ErrEnded) {
		err = noReply(err)
	}
	return err
}

// A carried implements carrier.Carrier for a request.
type carried struct{ q pending }

func (c carried) ReplyFrom(to any) bool            { return c.q.replyFrom(to) }
func (c carried) Refuse(err error) bool            { return c.q.fail(err) }
func (c carried) Waited() bool                     { return c.q.call().waited() }
func (c carried) NewReply() any                    { return c.q.newReply() }
func (c carried) ReplyTo(f func(v any, err error)) { c.q.replyTo(f) }

func (q *Request[R]) replyFrom(to any) bool {
	v, ok := to.(*R)
	if !ok {
		panic("actor: ReplyFrom with a pointer that NewReply did not return")
	}
	return q.Reply(*v)
}

func (q *Request[R]) newReply() any { return new(R) }

func (q *Request[R]) replyTo(f func(v any, err error)) {
	if f == nil {
		panic("actor: ReplyTo with a nil function")
	}
	if q.asked.phase.Load() != fresh {
		panic("actor: ReplyTo for a request that was already used")
	}
	q.to = func(v R, err error) { f(v, err) }
	q.asked.phase.Store(asked)
}

package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// A Request is embedded in a message that is answered with an R:
//
//	type Get struct{ actor.Request[int] }
//
//	v, err := actor.Ask(ctx, counter, &Get{})
//
// The zero Request is ready to be asked, once. It has one home: the actor whose mailbox it was put into last, by the Ask, or by a
// Send that passes it on. If its home ends, or fails and is caught with the request received and not answered, the Ask returns
// ErrNoReply. So an actor that gives a request to a goroutine answers for it as long as it lives.
type Request[R any] struct {
	asked  call
	value  R     // guarded by asked, like what follows; never changes once it is answered
	err    error // of the answer
	waiter suspend.Resumer[struct{}]
	to     func(R, error) // instead of a waiting Ask; written before the request is put into a mailbox
}

// A Question is a message that embeds a Request[R], by pointer.
type Question[R any] interface{ request() *Request[R] }

func (q *Request[R]) request() *Request[R] { return q }
func (q *Request[R]) call() *call          { return &q.asked }

// Reply answers the request, and reports whether anybody waits for it. If it is false, nothing has happened: the request has been
// answered or refused, its home has ended, or the Ask was cancelled. Reply synchronizes before the return of the Ask.
func (q *Request[R]) Reply(v R) bool { return q.resolve(v, nil) }

// Refuse is Reply with an error, which the Ask returns.
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

// resolve answers the request, unless it was answered or nobody has asked it.
func (q *Request[R]) resolve(v R, err error) bool {
	c := &q.asked
	c.guard.Lock()
	if c.phase.Load() != asked {
		c.guard.Unlock()
		return false
	}
	q.value, q.err = v, err
	c.phase.Store(answered)
	waiter := q.waiter
	q.waiter = suspend.Resumer[struct{}]{}
	waiter.Resume(struct{}{}, nil) // false: the Ask does not wait yet, or was cancelled; it will look
	c.guard.Unlock()
	c.home.Swap(nil).drop() // pairs with adoptLocked's look at answered
	if q.to != nil {
		q.to(v, err)
	}
	return true
}

// A reply is a Request as the Source for which an Ask waits.
type reply[R any] Request[R]

func (q *reply[R]) Guard() *suspend.Guard { return &q.asked.guard }
func (q *reply[R]) Try() (none struct{}, ok bool, err error) {
	return none, q.asked.phase.Load() == answered, nil
}
func (q *reply[R]) Enqueue(r suspend.Resumer[struct{}]) { q.waiter = r }
func (q *reply[R]) Remove(suspend.Resumer[struct{}])    { q.waiter = suspend.Resumer[struct{}]{} }

// A pending is a Request of any type.
type pending interface {
	call() *call
	fail(err error) bool
	replyFrom(to any) bool
	newReply() any
	replyTo(f func(v any, err error))
}

// A call is how far a request has come, and where it has its home.
//
//	fresh -Ask> asked      -Reply> answered   for good
//	asked -Ask> fresh      refused by the mailbox
type call struct {
	guard suspend.Guard
	phase atomicx.Uint32         // becomes answered under guard
	home  atomicx.Pointer[entry] // nil: not asked, or answered. The entry of the home that accepted it last
	first entry                  // used for the first home
}

const (
	fresh uint32 = iota
	asked
	answered
)

// waited reports whether the request was asked and is not answered.
func (c *call) waited() bool { return c.phase.Load() == asked }

// An entry says that a request has, or had, its home at an actor. It is in a ring of those of this actor, guarded by the guard there.
type entry struct {
	q          pending
	at         *life
	next, prev *entry // nil: in no ring
}

// adoptLocked makes this actor the home of q, and returns where it was before, for the caller to drop outside the guard.
func (l *life) adoptLocked(q pending) (before *entry) {
	c := q.call()
	if !c.waited() {
		return nil
	}
	e := &c.first
	if e.at != nil { // otherwise it is being asked
		e = new(entry)
	}
	e.q, e.at = q, l
	if l.calls == nil {
		e.next, e.prev = e, e
	} else {
		e.prev, e.next = l.calls, l.calls.next
		e.prev.next, e.next.prev = e, e
	}
	l.calls = e
	before = c.home.Swap(e)
	if !c.waited() && c.home.CompareAndSwap(e, nil) { // it may have looked for its home before there was this one
		e.unlinkLocked()
	}
	return before
}

func (e *entry) unlinkLocked() {
	if e.next == nil {
		return
	}
	if e.at.calls == e {
		if e.at.calls = e.prev; e.prev == e {
			e.at.calls = nil
		}
	}
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
}

// drop takes the entry of a request out that has its home elsewhere by now.
func (e *entry) drop() {
	if e == nil {
		return
	}
	e.at.guard.Lock()
	e.unlinkLocked()
	e.at.guard.Unlock()
}

// A set of entries that are in no ring any more.
type entries []*entry

// takeCallsLocked takes out the requests at home here, the oldest first. Those in stay remain.
func (l *life) takeCallsLocked(stay map[*call]bool) (out entries) {
	if l.calls == nil {
		return nil
	}
	var all entries
	for e := l.calls.next; ; e = e.next {
		all = append(all, e)
		if e == l.calls {
			break
		}
	}
	for _, e := range all {
		if !stay[e.q.call()] {
			e.unlinkLocked()
			out = append(out, e)
		}
	}
	return out
}

// fail fails the requests whose home is still here.
func (es entries) fail(err error) {
	each(func() bool { // a function of ReplyTo may panic
		if len(es) == 0 {
			return false
		}
		e := es[0]
		es = es[1:]
		if e.q.call().home.CompareAndSwap(e, nil) {
			e.q.fail(noReply(err))
		}
		return true
	})
}

func noReply(err error) error {
	if err == nil {
		return ErrNoReply
	}
	return fmt.Errorf("%w: %w", ErrNoReply, err)
}

// failReceived fails the requests that the actor has received and neither answered nor sent on, as it has failed with err and goes
// on.
func (s *Self[M]) failReceived(err error) {
	s.guard.Lock()
	if s.calls == nil {
		s.guard.Unlock()
		return
	}
	stay := map[*call]bool{}
	waits := func(m M, n note) {
		if n.q == nil {
			n.q = s.requestOf(m)
		}
		if n.q != nil {
			stay[n.q.call()] = true
		}
	}
	s.kept.each(waits)
	s.in.each(waits)
	calls := s.takeCallsLocked(stay)
	s.guard.Unlock()
	calls.fail(err)
}

// Ask sends q to an actor and returns its reply, suspending the caller until there is one. If the actor ends first, or had ended, Ask
// returns ErrNoReply, and the actor's error if it has one. If ctx is done first, or already, it returns the error of the
// cancellation; a reply that comes later goes nowhere. If a Reply has reported true, Ask returns that reply. An actor that asks itself
// gets ErrNoReply at once.
//
// It panics if q is nil or not a message of the actor, or was asked before.
func Ask[R, M any](ctx context.Context, to Ref[M], q Question[R]) (R, error) {
	var none R
	if err := suspend.Err(ctx); err != nil {
		return none, err
	}
	m, r := requestIn(to, q)
	err := errSelf
	if !to.lifeOf().runsHere() {
		err = put(to, m, r)
	}
	if err != nil {
		r.asked.phase.CompareAndSwap(asked, fresh)
		return none, err
	}
	if watched.Load() {
		defer watchAsk(ctx, r).over()
	}
	_, err = suspend.Wait[struct{}](ctx, (*reply[R])(r), true)
	if err != nil && r.fail(err) {
		return none, err
	}
	return r.value, r.err
}

// AskLater is Ask without waiting: it returns the future of the reply.
func AskLater[R, M any](to Ref[M], q Question[R]) promise.Future[R] {
	m, r := requestIn(to, q)
	answer := promise.New[R]()
	r.to = func(v R, err error) { _ = answer.Resolve(v, err) }
	if err := put(to, m, r); err != nil {
		r.fail(err)
	}
	return answer
}

// errSelf is the error of an actor that asks itself: it would wait for itself.
var errSelf = noReply(errors.New("an actor asks itself"))

// runsHere reports whether the caller is the actor's task.
func (l *life) runsHere() bool {
	id := l.task.Load()
	return id != 0 && id == goroutineID()
}

func goroutineID() int64 {
	if id := gid.Quick(); id != 0 {
		return id
	}
	return gid.Get()
}

// requestIn returns q as a message of to, and the request in it, which is asked from now on.
func requestIn[R, M any](to Ref[M], q Question[R]) (M, *Request[R]) {
	if q == nil || isNil(q) {
		panic("actor: Ask with a nil request")
	}
	m, ok := any(q).(M)
	if !ok {
		panic(fmt.Sprintf("actor: Ask with a %T, which is no message of %T", q, to))
	}
	r := q.request()
	if !r.asked.phase.CompareAndSwap(fresh, asked) {
		panic("actor: Ask with a request that was asked before")
	}
	return m, r
}

// put puts m, which is r, into the mailbox.
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

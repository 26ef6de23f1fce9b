package actor

import (
	"fmt"
	"reflect"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A pending is a Request of any type.
type pending interface {
	call() *call
	kind() reflect.Type // the Request[R]
	fail(err error) bool
	replyFrom(to any) bool
	newReply() any
	replyTo(f func(v any, err error))
}

// A call holds the phase of a request, and its home.
//
//	fresh -Ask> asked      -Reply> answered   final
//	asked -Ask> fresh      refused by the mailbox
type call struct {
	guard  suspend.Guard
	phase  atomicx.Uint32            // changed to answered only under guard
	home   atomicx.Pointer[entry]    // the entry of the last home; nil before the Ask and after the answer
	first  entry                     // the entry of the first home
	waiter suspend.Resumer[struct{}] // the Ask that waits; guarded
}

const (
	fresh uint32 = iota
	asked
	answered
)

// waited reports whether the request was asked and has not been answered.
func (c *call) waited() bool { return c.phase.Load() == asked }

// An entry records that an actor is, or was, the home of a request. The entries of an actor form a ring, which the actor's guard
// protects.
type entry struct {
	q          pending
	at         *life
	next, prev *entry // are nil outside a ring
}

// adoptLocked makes this actor the home of q. It returns the entry of the previous home, which the caller must drop after it unlocks
// the guard.
func (l *life) adoptLocked(q pending) (before *entry) {
	c := q.call()
	if !c.waited() {
		return nil
	}
	e := &c.first
	if e.at != nil { // c.first is already in use
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
	if !c.waited() && c.home.CompareAndSwap(e, nil) { // resolve may have cleared c.home before the Swap
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

// drop unlinks the entry of a request that has another home now, or has been answered. e may be nil.
func (e *entry) drop() {
	if e == nil {
		return
	}
	e.at.guard.Relock()
	e.unlinkLocked()
	e.at.guard.Unlock()
}

// An entries is a list of entries that have been removed from their ring.
type entries []*entry

// takeCallsLocked unlinks and returns the entries of all requests whose home is this actor, oldest first, except the requests in the
// map stay.
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

// fail fails those requests that have not moved to another home.
func (es entries) fail(err error) {
	each(func() bool { // a function passed to ReplyTo may panic
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

// each calls the function next until it returns false. If the function panics or calls Goexit, the calls continue while the stack
// unwinds.
func each(next func() (more bool)) {
	more := true
	defer func() {
		if more {
			each(next)
		}
	}()
	for more {
		more = next()
	}
}

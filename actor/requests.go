package actor

import (
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A pending is a Request of any type.
type pending interface {
	call() *call
	fail(err error) bool
	replyFrom(to any) bool
	newReply() any
	replyTo(f func(v any, err error))
}

// A call is the phase of a request, and its home.
//
//	fresh -Ask> asked      -Reply> answered   for good
//	asked -Ask> fresh      refused by the mailbox
type call struct {
	guard suspend.Guard
	phase atomicx.Uint32         // becomes answered under guard
	home  atomicx.Pointer[entry] // the entry of the home that accepted it last; nil if it was not asked, or is answered
	first entry                  // used for the first home
}

const (
	fresh uint32 = iota
	asked
	answered
)

// waited reports whether the request was asked and is not answered.
func (c *call) waited() bool { return c.phase.Load() == asked }

// An entry says that a request has, or had, its home at an actor. It is in the ring of this actor's entries, which the actor's guard guards.
type entry struct {
	q          pending
	at         *life
	next, prev *entry // are nil outside a ring
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
	e.at.guard.Relock()
	e.unlinkLocked()
	e.at.guard.Unlock()
}

// A set of entries that are in no ring any more.
type entries []*entry

// takeCallsLocked takes out the requests at home here, the oldest first. Requests in stay remain.
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

// each calls next until it reports that nothing is left. After a panic or a Goexit of next, it goes on while that unwinds.
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

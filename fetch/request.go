package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/suspend"
)

// A request is one key that a session asks a source for, and later the answer.
//
//	pending -> open  its driver sends it
//	pending -> gone  nobody waits for it any more; it was never sent
//	open    -> back  its batch has returned, and tasks of other drivers get the answer
//	open    -> gone  nobody waits for any of its batch, or its answer is not to be remembered
//	back    -> done  the round is handed out
//
// Invariant: a linked waiter is suspended, or about to be, or about to leave.
type request struct {
	keyed               // the *entry that this is the head of
	d           *driver // which sends it
	b           *batch
	first, last *link  // of the waiters
	asked       *asked // nil: no trace
	needed      int32  // how many waiters there are
	foreign     int32  // how many of these are not tasks of d
	state       state
	write       bool // it is an effect: not shared, and not cancelled once its batch has started
	set         bool // the source has answered
	panicked    bool // the answer is a panic of the source
	passing     bool // the answer is not to be remembered
}

// keyed has the methods of a request that depend on the type of its key.
type keyed interface {
	removeLocked()
	gatherLocked(most int) (t table, first bool)
	end(err error)
	keyAsAny() any
}

type state uint8

const (
	pending state = iota
	open
	back
	done
	gone
)

// A link says that a waiter waits for a request.
type link struct {
	w          *waiter // nil: it is not one of the links of q
	q          *request
	next, prev *link
}

// A waiter is a task that waits for requests: of one Get, or of one All.
type waiter struct {
	d      *driver         // of the task
	ctx    context.Context // without the frame: suspend knows it then, and a wait is quicker
	r      suspend.Resumer[struct{}]
	links  *[]link // of all requests; nil: one
	one    link
	left   int32  // of its requests
	prompt bool   // ctx tells its end at once, or has none
	duty   *round // which it is to hand out
	stop   *batch // the first of those to be cancelled
	mark   *mark  // the call, for the trace; nil: no trace
}

// begin makes w a waiter of the calling task. f is the frame of ctx.
func (w *waiter) begin(ctx context.Context, f *frame, s *Session) {
	w.d, w.ctx = s.driverHere(f), ctx
	if ctx == context.Context(f) {
		w.ctx = f.Context
	}
	if c, ok := w.ctx.(*cancelctx.Context); ok {
		w.prompt = c.DoneIfMade() == nil
	} else {
		w.prompt = w.ctx.Done() == nil
	}
}

// Guard is part of a suspend.Source.
func (w *waiter) Guard() *suspend.Guard { return &w.d.s.guard }

// comesLocked is the beginning of a wait.
func (w *waiter) comesLocked(r suspend.Resumer[struct{}]) {
	w.r = r
	w.d.waiters++
}

// Remove is part of a suspend.Source: it is called if the wait was cancelled.
func (w *waiter) Remove(suspend.Resumer[struct{}]) { w.leaveLocked() }

// lookAtContext reports whether w's context is done, which may not have told. A context that panics is not done: the task that has
// brought it gets its answer, and nobody else is hurt.
func (w *waiter) lookAtContext() (done bool) {
	defer func() { _ = recover() }()
	return suspend.Err(w.ctx) != nil
}

// wait waits as src says, of which w is a part, and then pays the debts of w.
func wait[S suspend.Source[struct{}]](w *waiter, src S) error {
	defer w.pay()
	_, err := suspend.Wait[struct{}](w.ctx, src, false)
	return err
}

func (w *waiter) pay() {
	if r := w.duty; r != nil {
		g := w.Guard()
		g.Lock()
		r.handLocked(false)
		r.overLocked()
		g.Unlock()
	}
	for b := w.stop; b != nil; b = b.also {
		b.stop(nil)
	}
}

// joinLocked adds w to the waiters of q.
func (w *waiter) joinLocked(l *link, q *request) {
	*l = link{w: w, q: q, prev: q.last}
	if l.prev != nil {
		l.prev.next = l
	} else {
		q.first = l
	}
	q.last = l
	w.left++
	if q.d != w.d {
		if q.state == pending && w.d.settled {
			q.moveLocked(w.d) // q.d's scheduler may stand still until w goes on
		} else {
			q.foreign++
		}
	}
	if q.needed++; q.needed > 1 {
		return
	}
	switch q.state {
	case pending:
		if q.d.wantLocked(); q.d != w.d { // it was asked for by Ask, and q.d may sleep
			q.d.rouseLocked()
		}
	case open:
		q.b.needed++
	}
}

// moveLocked makes a pending request one of another driver.
func (q *request) moveLocked(to *driver) {
	if q.needed > 0 {
		q.d.wanted--
	}
	q.d = to
	q.foreign = 0
	for l := q.first; l != nil; l = l.next {
		if l.w.d != to {
			q.foreign++
		}
	}
	to.pendLocked(q)
	if q.needed > 0 {
		to.wantLocked()
	}
}

func (l *link) unlinkLocked() {
	q, w := l.q, l.w
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		q.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		q.last = l.prev
	}
	l.w = nil
	q.needed--
	if w.d != q.d {
		q.foreign--
	}
	w.left--
}

// leaveLocked takes w off all its requests. A request without waiters is not sent; a batch without waiters is cancelled, by pay.
func (w *waiter) leaveLocked() {
	if w.links == nil {
		w.leaveOneLocked(&w.one)
		return
	}
	for i := range *w.links {
		w.leaveOneLocked(&(*w.links)[i])
	}
}

func (w *waiter) leaveOneLocked(l *link) {
	q := l.q
	if l.w == nil {
		return
	}
	if l.unlinkLocked(); q.needed > 0 {
		return
	}
	switch q.state {
	case pending:
		q.d.wanted--
		q.forgetLocked()
		w.d.s.stats.Dropped++
	case open:
		if b := q.b; !b.write || !b.started {
			if b.needed--; b.needed == 0 {
				b.cancelLocked()
				b.also, w.stop = w.stop, b
			}
		}
	}
}

// forgetLocked makes a request one that was never made.
func (q *request) forgetLocked() {
	q.state = gone
	q.removeLocked()
}

// resumeLocked resumes all waiters of q, or only those of other drivers.
func (q *request) resumeLocked(foreignOnly bool) {
	for l := q.first; l != nil; {
		next, w := l.next, l.w
		if !foreignOnly || w.d != q.d {
			if l.unlinkLocked(); w.left == 0 {
				w.r.Resume(struct{}{}, nil)
			}
		}
		l = next
	}
}

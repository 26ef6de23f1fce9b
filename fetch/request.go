package fetch

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/suspend"
)

// A request is one key that a session asks a source for, and later the answer.
//
//	pending -I> open    its driver sends it
//	pending -G> gone    the last waiter leaves, or the session ends; it was never sent
//	open    -B> back    its batch has returned, and tasks of other drivers get the answer
//	open    -G> gone    the last waiter of its batch leaves
//	back    -T> done    the round is handed out
//
// Invariant: a waiter in waiters is suspended, or about to suspend, or about to leave. A pending request has one.
type request struct {
	self        any // the *entry that this is the head of
	t           *table
	d           *driver              // sends it
	b           *batch               // nil: it was not sent
	node        dlist.Node[*request] // among the pending ones of d, and then of the round
	waiters     dlist.List[*waiter]
	first, last *mark // the Gets that waited for it, for the trace
	err         error // of the answer; a *thrown if the source has panicked
	state       state
	set         bool // the source has answered
	passing     bool // the answer is not remembered
}

type state uint8

const (
	pending state = iota
	open
	back
	done
	gone
)

// A table has the requests of a session for one source.
type table struct {
	s       *Session
	of      any // the *Source
	name    string
	opts    SourceOptions
	write   bool       // of an Effect: nothing is shared, and only the end of the session cancels a batch that has started
	filling *batch     // takes the next request that is sent
	open    int        // batches that have started
	queue   []*batch   // wait until open is less than MaxOpen
	did     []*request // the effects, in the order in which they were sent
	typed              // the *tableOf that this is the head of
}

// typed has the methods of a table that depend on the types of its keys and values.
type typed interface {
	call(ctx context.Context, b *batch) error // the source
	forgetLocked(q *request)
	rememberedLocked() []*request
	pair(q *request) (key, value any)
}

// A waiter is a task that waits for the requests of one Get, or of one All.
type waiter struct {
	d      *driver         // of the task
	ctx    context.Context // without the frame: suspend recognizes it then, and a wait is quicker
	r      suspend.Resumer[struct{}]
	links  []link
	left   int      // links that are in a request's list
	prompt bool     // ctx tells its end at once, or has none
	duty   *round   // the task has to hand it out
	stop   []*batch // the task has to cancel them
	mark   *mark    // the call, for the trace; nil: no trace
}

// A link is the place of a waiter in the list of a request.
type link struct {
	dlist.Node[*waiter]
	q *request
}

// begin makes w a waiter of the calling task. f is the frame of ctx.
func (w *waiter) begin(ctx context.Context, f *frame) {
	w.d, w.ctx = f.s.driverHere(f), ctx
	if ctx == context.Context(f) {
		w.ctx = f.Context
	}
	if c, ok := w.ctx.(*cancelctx.Context); ok {
		w.prompt = c.DoneIfMade() == nil
	} else {
		w.prompt = w.ctx.Done() == nil
	}
	if f.trail != nil {
		w.mark = f.mark()
	}
}

// joinLocked adds w to the waiters of q, which is new, pending or open.
func (w *waiter) joinLocked(l *link, q *request) {
	if q.state == open && q.waiters.First() == nil {
		q.b.needed++
	}
	l.q, l.Value = q, w
	q.waiters.Push(&l.Node)
	w.left++
	q.markLocked(w.mark)
	switch {
	case q.d == nil: // it is new
		w.d.addLocked(q)
	case q.state == pending && q.d != w.d && w.d.settled: // the scheduler of q.d may stand still until this goroutine goes on
		w.d.addLocked(q)
	}
}

// leaveLocked takes w off all its requests. A request without waiters is not sent; pay cancels a batch without waiters.
func (w *waiter) leaveLocked() {
	for i := range w.links {
		l := &w.links[i]
		q := l.q
		if l.Value == nil || !q.waiters.Remove(&l.Node) {
			continue
		}
		if w.left--; q.waiters.First() != nil {
			continue
		}
		switch b := q.b; {
		case q.state == pending:
			q.d.pendingLocked(q).Remove(&q.node)
			q.forgetLocked()
			q.t.s.stats.Dropped++
		case q.state == open && !(b.kept && b.started):
			if b.needed--; b.needed == 0 {
				b.cancelLocked()
				w.stop = append(w.stop, b)
			}
		}
	}
}

// pay does what w owes when its wait has ended: no lock is held then.
func (w *waiter) pay() {
	if r := w.duty; r != nil {
		g := &w.d.s.guard
		g.Lock()
		r.handLocked(false)
		r.overLocked()
		g.Unlock()
	}
	cancelAll(w.stop, nil)
}

// lookAtContext reports whether w's context is done, which may not have told. A context that panics counts as not done, so that
// it harms no other task.
func (w *waiter) lookAtContext() (done bool) {
	defer func() { _ = recover() }()
	return suspend.Err(w.ctx) != nil
}

// forgetLocked makes a request one that was never made.
func (q *request) forgetLocked() {
	q.state = gone
	q.t.forgetLocked(q)
}

// resumeLocked resumes all waiters of q that wait for nothing else, or only those of other drivers.
func (q *request) resumeLocked(foreignOnly bool) {
	for n := q.waiters.First(); n != nil; {
		next, w := n.Next(), n.Value
		if !foreignOnly || w.d != q.d {
			q.waiters.Remove(n)
			if w.left--; w.left == 0 {
				w.r.Resume(struct{}{}, nil)
			}
		}
		n = next
	}
}

package fetch

import (
	"runtime"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// This file records the data for a session's Trace: the batches, the Gets of each request, and the last answer of each task.
// trace.go reads these records.

// A tracer records the batches of a session. The session's guard protects the tracer and the marks. Session.tracer is
// nil without a Trace, and is not called then.
type tracer struct {
	name  string
	begun time.Time
	sent  []*batch // sorted by send time
}

// A mark records a Get of one key: its task and its place in the code.
type mark struct {
	label   string
	task    *trail
	because *request // the request whose answer the task received last
	at      place
	next    *mark     // the next mark of the same request
	wide    []uintptr // a longer form of the field at, if Options.Skip is set; nil otherwise
	skip    func(function string) bool
	listed  bool
}

// A place holds the innermost stack frames of a Get. These frames include the user's call of Get or the call of a combinator.
type place [3]uintptr

// A widePlace holds the innermost stack frames of a combinator's caller. A widePlace has more frames than a place, because
// combinators may call each other.
type widePlace [6]uintptr

// A trail is the history of one task.
type trail struct {
	last  atomicx.Pointer[request] // atomic because goroutines outside a Run share a trail
	group *widePlace               // the call of a combinator that started the task, or nil
}

func newTracer(f *frame) *tracer {
	t := &tracer{name: "fetch", begun: time.Now()}
	if f != nil && f.label != "" {
		t.name = f.label
	}
	return t
}

// sendLocked records that b was sent. In a replay it records nothing, because nothing is sent.
func (t *tracer) sendLocked(b *batch) {
	if b.t.s.recorded == nil {
		t.sent = append(t.sent, b)
	}
}

func (t *tracer) now() time.Duration {
	return time.Since(t.begun)
}

// mark returns a mark for the calling Get or All, which must have called mark through call.wait and waiter.init.
func (f *frame) mark() *mark {
	const above = 4 // skips the frames of runtime.Callers, mark, init and wait
	m := &mark{label: f.label, task: f.trail, because: f.trail.last.Load()}
	runtime.Callers(above, m.at[:])
	if m.skip = f.s.opts.Skip; m.skip != nil {
		m.wide = make([]uintptr, 16)
		m.wide = m.wide[:runtime.Callers(above, m.wide)]
	}
	return m
}

// markLocked adds m to the list of Gets of q.
func (q *request) markLocked(m *mark) {
	if m.listed { // an All is already listed for another key
		again := *m
		m = &again
	}
	if m.next, m.listed = nil, true; q.first == nil {
		q.first = m
	} else {
		q.last.next = m
	}
	q.last = m
}

func newTrail(last *request, group *widePlace) *trail {
	t := &trail{group: group}
	t.last.Store(last)
	return t
}

// combinator returns the trail for the items of the combinator that called it.
func (t *trail) combinator() *trail {
	at := new(widePlace)
	runtime.Callers(3, at[:]) // the first frame is the caller of the function together
	return newTrail(t.last.Load(), at)
}

// item returns the trail for one item of the combinator.
func (t *trail) item() *trail { return newTrail(t.last.Load(), t.group) }

// got records that the task has received the answer of q.
func (t *trail) got(q *request) { t.last.Store(t.last.Load().later(q)) }

// later returns q or p, depending on which was answered later.
func (q *request) later(p *request) *request {
	switch {
	case q == nil || q.b == nil:
		return p
	case p == nil || p.b == nil:
		return q
	}
	if m, n := q.b.round.number, p.b.round.number; m != n && m > 0 && n > 0 {
		if n > m {
			return p
		}
		return q
	}
	if p.b.to > q.b.to {
		return p
	}
	return q
}

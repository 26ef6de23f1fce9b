package fetch

import (
	"runtime"
	"time"
)

// What a session notes for its Trace, if it has one: the batches, the Gets of each request, and the last answer of each task. trace.go
// reads it.

func newTracer(f *frame) *tracer {
	t := &tracer{name: "fetch", begun: time.Now()}
	if f != nil && f.label != "" {
		t.name = f.label
	}
	return t
}

// sendLocked notes a batch, unless it is a replay: nothing is sent then.
func (t *tracer) sendLocked(b *batch) {
	if t != nil && b.t.s.recorded == nil {
		t.sent = append(t.sent, b)
	}
}

func (t *tracer) now() time.Duration {
	if t == nil {
		return 0
	}
	return time.Since(t.begun)
}

// mark notes the Get or All that has called waiter.begin by way of call.wait.
func (f *frame) mark() *mark {
	const above = 4 // runtime.Callers, mark, begin, wait
	m := &mark{label: f.label, task: f.trail, because: f.trail.last.Load()}
	runtime.Callers(above, m.at[:])
	if m.skip = f.s.opts.Skip; m.skip != nil {
		m.wide = make([]uintptr, 16)
		m.wide = m.wide[:runtime.Callers(above, m.wide)]
	}
	return m
}

// markLocked notes that m has asked for q.
func (q *request) markLocked(m *mark) {
	if m == nil {
		return
	}
	if m.listed { // the All is listed for another key already
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

// combinator is the trail of the items of a combinator that is being called.
func (t *trail) combinator() *trail {
	at := new(widePlace)
	runtime.Callers(3, at[:]) // the caller of together comes first
	return newTrail(t.last.Load(), at)
}

// item returns a trail for an item of the combinator.
func (t *trail) item() *trail { return newTrail(t.last.Load(), t.group) }

// got notes that the task has had an answer.
func (t *trail) got(q *request) { t.last.Store(t.last.Load().later(q)) }

// later returns the request that was answered later.
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

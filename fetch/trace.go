package fetch

import (
	"runtime"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A tracer collects the events of a session for its Trace. It is guarded by the session's guard, like all that follows.
type tracer struct {
	name  string
	begun time.Time
	sent  []*sent // in the order of their being sent
}

// A sent is a batch.
type sent struct {
	source   string
	round    int
	requests []*asked
	from, to time.Duration // since the beginning
	begun    bool
	over     bool
	eager    bool // nobody waited for its round
	t        *tracer
}

// An asked is a request.
type asked struct {
	key         any
	sent        *sent // nil: not yet
	first, last *mark // of all Gets that waited for it; the first made it
}

// A mark is one Get, of one key: the task and the place in the code.
type mark struct {
	label   string
	task    *trail
	because *asked // whose answer the task had last
	at      place
	next    *mark     // of the same request
	wide    []uintptr // like at, if functions may be passed over; else nil
	skip    func(function string) bool
	listed  bool
}

// A place is where a Get was called: the innermost frames. That of the caller is among them, or it is that of a combinator.
type place [3]uintptr

// A wide place is where a combinator was called, which may consist of others.
type widePlace [6]uintptr

// A trail is the past of a task. It is the task's own.
type trail struct {
	last  atomicx.Pointer[asked] // goroutines that are no tasks share a trail
	group *widePlace             // of the combinator that the task is an item of, or nil
}

func newTracer(f *frame) *tracer {
	t := &tracer{name: "fetch", begun: time.Now()}
	if f != nil && f.label != "" {
		t.name = f.label
	}
	return t
}

// got notes that the task has had an answer.
func (t *trail) got(a *asked) { t.last.Store(t.last.Load().later(a)) }

// later returns which of both was answered later.
func (a *asked) later(b *asked) *asked {
	switch {
	case a == nil || a.sent == nil:
		return b
	case b == nil || b.sent == nil || !b.sent.after(a.sent):
		return a
	}
	return b
}

// after reports whether s was back after o.
func (s *sent) after(o *sent) bool {
	if s.round != o.round && s.round > 0 && o.round > 0 {
		return s.round > o.round
	}
	return s.to > o.to
}

// combinator is the trail of the items of a combinator that is being called.
func (t *trail) combinator() *trail {
	at := new(widePlace)
	runtime.Callers(3, at[:]) // from the caller of together
	return newTrail(t.last.Load(), at)
}

// item is the trail of one of them.
func (t *trail) item() *trail { return newTrail(t.last.Load(), t.group) }

func newTrail(last *asked, group *widePlace) *trail {
	t := &trail{group: group}
	t.last.Store(last)
	return t
}

// mark notes a Get. The caller of that is skip frames above the caller of mark.
func (f *frame) mark(skip int) *mark {
	m := &mark{label: f.label, task: f.trail, because: f.trail.last.Load()}
	runtime.Callers(skip+2, m.at[:])
	if m.skip = f.s.opts.Skip; m.skip != nil {
		m.wide = make([]uintptr, 16)
		m.wide = m.wide[:runtime.Callers(skip+2, m.wide)]
	}
	return m
}

// markLocked notes that m has asked for q.
func (q *request) markLocked(m *mark) {
	if m == nil {
		return
	}
	if q.asked == nil {
		q.asked = &asked{key: q.keyAsAny()}
	}
	if m.listed { // for another key of the same All
		again := *m
		m = &again
	}
	m.next, m.listed = nil, true
	if a := q.asked; a.first == nil {
		a.first, a.last = m, m
	} else {
		a.last.next, a.last = m, m
	}
}

func (e *entry[K, V]) keyAsAny() any { return e.key }

// sendLocked notes that b is sent.
func (t *tracer) sendLocked(b *batch, source string) {
	if t == nil {
		return
	}
	b.sent = &sent{source: source, round: b.round.number, eager: b.d.policy == Eager, t: t}
	for _, q := range b.self.requests() {
		if q.asked == nil {
			q.asked = &asked{key: q.keyAsAny()} // of an Ask
		}
		q.asked.sent = b.sent
		b.sent.requests = append(b.sent.requests, q.asked)
	}
	t.sent = append(t.sent, b.sent)
}

// beginLocked is when the source is called, and endLocked when it has returned.
func (s *sent) beginLocked() {
	if s != nil {
		s.from, s.begun = time.Since(s.t.begun), true
	}
}

func (s *sent) endLocked() {
	if s != nil {
		s.to, s.over = time.Since(s.t.begun), true
	}
}

// A Trace tells the rounds of a session, and the reason for their number. String makes a picture of it.
type Trace struct {
	Name    string
	Stats   Stats
	Took    time.Duration
	Batches []TracedBatch // in the order of their being sent
	Why     []TracedStep  // the critical path: each step needed the answer of the one before
	Hints   []string      // what would save rounds, or waiting

	sent []*sent
}

// A TracedBatch is one call of a source.
type TracedBatch struct {
	Round      int // 0: of no round
	Source     string
	Keys       int
	Labels     []string // of the tasks that asked, with the number of keys if that differs
	Lines      []string // where they did: file:line
	Start, End time.Duration
	Open       bool // it has not returned; End is the time of the Trace
}

// A TracedStep is a request, as a step on the way to others.
type TracedStep struct {
	Source string
	Key    any
	Keys   int // of its batch
	Round  int
	Line   string
}

// Trace returns the batches of the session, also those that have not returned, nil without Options.Trace. The critical path and the hints
// are of those that have.
func (s *Session) Trace() *Trace {
	if s.tracer == nil {
		return nil
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	t := &Trace{Name: s.tracer.name, Stats: s.stats}
	now := time.Since(s.tracer.begun)
	for _, b := range s.tracer.sent {
		switch {
		case b.over:
			t.sent = append(t.sent, b)
			t.Took = max(t.Took, b.to)
			t.Batches = append(t.Batches, b.traced())
		case b.begun:
			open := b.traced()
			open.End, open.Open = now, true
			t.Took = now
			t.Batches = append(t.Batches, open)
		}
	}
	t.Why = t.why()
	t.Hints = t.hints()
	t.sent = nil
	return t
}

package fetch

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Trace tells the rounds of a session, and the reason for their number. String makes a picture of it.
type Trace struct {
	Name    string
	Stats   Stats
	Took    time.Duration
	Batches []TracedBatch // in the order of their being sent
	Why     []TracedStep  // the critical path: each step needed the answer of the one before
	Hints   []string      // what would save rounds, or waiting

	sent []*batch // the ones that have returned
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
	t := &Trace{Name: s.tracer.name, Stats: s.statsLocked()}
	now := s.tracer.now()
	for _, b := range s.tracer.sent {
		switch {
		case b.called && b.returned:
			t.sent = append(t.sent, b)
			t.Took = max(t.Took, b.to)
			t.Batches = append(t.Batches, b.traced())
		case b.called:
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

// traced returns b as the Trace shows it.
func (b *batch) traced() TracedBatch {
	t := TracedBatch{Round: b.round.number, Source: b.t.name, Keys: len(b.requests), Start: b.from, End: b.to}
	first, asked := map[string]int{}, map[string]int{} // how many keys each label made, and asked for
	seen := map[place]bool{}
	for _, q := range b.requests {
		of := map[string]bool{}
		if q.first != nil {
			first[q.first.label]++
		}
		for m := q.first; m != nil; m = m.next {
			if !of[m.label] {
				of[m.label] = true
				if asked[m.label]++; asked[m.label] == 1 {
					t.Labels = append(t.Labels, m.label)
				}
			}
			if m.wide != nil || !seen[m.at] {
				seen[m.at] = true
				if line := m.line(); !slices.Contains(t.Lines, line) {
					t.Lines = append(t.Lines, line)
				}
			}
		}
	}
	all := !slices.ContainsFunc(t.Labels, func(l string) bool { return asked[l] != len(b.requests) })
	named := t.Labels[:0:0]
	for _, l := range t.Labels {
		switch {
		case l == "" || !all && first[l] == 0:
		case all:
			named = append(named, l)
		default:
			named = append(named, fmt.Sprint(l, " ", first[l]))
		}
	}
	t.Labels = named
	return t
}

// why returns the critical path: from the last batch back, always to the answer that came latest before.
func (t *Trace) why() (steps []TracedStep) {
	if len(t.sent) == 0 {
		return nil
	}
	last := slices.MaxFunc(t.sent, func(a, b *batch) int {
		return cmp.Or(cmp.Compare(a.round.number, b.round.number), cmp.Compare(a.to, b.to))
	})
	for q := last.latest(); q != nil && q.first != nil; q = q.first.because {
		key, _ := q.t.pair(q)
		steps = append(steps, TracedStep{Source: q.t.name, Key: key, Keys: len(q.b.requests), Round: q.b.round.number, Line: q.first.line()})
	}
	slices.Reverse(steps)
	return steps
}

// latest returns the request that had to wait longest to be asked.
func (b *batch) latest() (latest *request) {
	var before *request
	for _, q := range b.requests {
		if q.first == nil {
			continue
		}
		if because := q.first.because; latest == nil || before.later(because) != before {
			latest, before = q, because
		}
	}
	return latest
}

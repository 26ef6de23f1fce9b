package fetch

import (
	"cmp"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Trace shows the rounds of a session, and explains their number. String formats it as text.
type Trace struct {
	Name    string
	Stats   Stats
	Took    time.Duration
	Batches []TracedBatch // sorted by send time
	Why     []TracedStep  // the critical path: each step needed the answer of the step before
	Hints   []string      // suggestions that may save rounds or waiting time

	sent []*batch // the batches that have returned
}

// A TracedBatch is one call of a source.
type TracedBatch struct {
	Round      int // 0 if the batch belongs to no round
	Source     string
	Keys       int
	Labels     []string // labels of the tasks, with numbers of keys unless all labels have all keys
	Lines      []string // places of the Gets, as file:line
	Start, End time.Duration
	Open       bool // the batch has not returned; End is the time of the Trace
}

// A TracedStep is a request on the critical path of a Trace.
type TracedStep struct {
	Source string
	Key    any
	Keys   int // number of keys in the request's batch
	Round  int
	Line   string
}

// Trace returns a Trace of the session, or nil if Options.Trace is not set. The Trace includes open batches, but its critical
// path and hints consider only batches that have returned.
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

// traced returns the entry for b in a Trace.
func (b *batch) traced() TracedBatch {
	t := TracedBatch{Round: b.round.number, Source: b.t.name, Keys: len(b.requests), Start: b.from, End: b.to}
	first, asked := map[string]int{}, map[string]int{} // count the keys that tasks with each label requested first, and in total
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

// why returns the critical path. The path starts at the last batch, and goes from each request back to the answer that its task
// received last.
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

// latest returns the request of b whose task received its previous answer last.
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

// line returns the place of the Get in the user's code, or else the place of the combinator.
func (m *mark) line() string {
	places := [][]uintptr{m.at[:]}
	if m.wide != nil {
		places[0] = m.wide
	}
	if g := m.task.group; g != nil {
		places = append(places, g[:])
	}
	for _, p := range places {
		frames := runtime.CallersFrames(p)
		for more := true; more; {
			var f runtime.Frame
			if f, more = frames.Next(); f.Function != "" && !ours(f.Function) && (m.skip == nil || !m.skip(f.Function)) {
				return fmt.Sprint(filepath.Base(f.File), ":", f.Line)
			}
		}
	}
	return "?"
}

// ours reports whether a function belongs to this package, or to a package that runs its tasks.
func ours(function string) bool {
	for _, prefix := range []string{"fetch.", "lazy.", "suspend.", "internal/", "adapters/"} {
		if strings.HasPrefix(function, "github.com/braidgo/braid/"+prefix) {
			return true
		}
	}
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "iter.")
}

const barWidth = 30

// String formats each batch as a line with its round, source, number of keys, time bar, labels and source lines. The critical
// path, which explains the number of rounds, and the hints follow.
func (t *Trace) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %s, %s, %s for %s, %s\n", t.Name, count(t.Stats.Rounds, "round"), count(t.Stats.Batches, "batch"),
		count(t.Stats.Keys, "key"), count(t.Stats.Gets, "get"), short(t.Took))
	rows, last := make([][]string, len(t.Batches)), 0
	widths := make([]int, 5)
	for i, b := range t.Batches {
		round := ""
		if b.Round != last && b.Round > 0 {
			round, last = fmt.Sprint(b.Round), b.Round
		}
		rows[i] = []string{round, b.Source, fmt.Sprint(b.Keys), t.bar(b), strings.Join(b.Labels, ", ")}
		for j, cell := range rows[i] {
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	for i, r := range rows {
		line := fmt.Sprintf("%*s  %-*s %*s  %-*s %-*s  %s", widths[0]+1, r[0], widths[1], r[1], widths[2], r[2],
			widths[3], r[3], widths[4], r[4], strings.Join(t.Batches[i].Lines, ", "))
		if t.Batches[i].Open {
			line = strings.TrimRight(line, " ") + "  (open)"
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if len(t.Why) > 0 {
		steps := make([]string, len(t.Why))
		for i, w := range t.Why {
			what := w.Source
			switch {
			case i < len(t.Why)-1 && w.Keys > 1:
				what += fmt.Sprint(" of ", w.Keys)
			case w.Key != struct{}{} && (w.Keys > 1 || i == len(t.Why)-1):
				what += fmt.Sprint(" ", w.Key)
			}
			steps[i] = fmt.Sprintf("%s (%s)", what, w.Line)
		}
		fmt.Fprintf(&s, "why %d: %s\n", t.Stats.Rounds, strings.Join(steps, " → "))
	}
	for _, h := range t.Hints {
		s.WriteString(h + "\n")
	}
	return s.String()
}

// bar draws the time in which b was open, as a part of the time of the trace.
func (t *Trace) bar(b TracedBatch) string {
	if t.Took == 0 {
		return ""
	}
	from := int(b.Start * barWidth / t.Took)
	to := max(from+1, int(b.End*barWidth/t.Took))
	return strings.Repeat(" ", from) + strings.Repeat("▇", to-from) + strings.Repeat(" ", max(0, barWidth-to))
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		what += "e"
	}
	return fmt.Sprint(n, " ", what, "s")
}

func short(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond))
}

// hints returns suggestions about avoidable rounds, and about tasks that wait only for the end of their round.
func (t *Trace) hints() (hints []string) {
	lone := t.lone()
	for i := 0; i < len(lone); {
		j, sameLine := i+1, true
		for j < len(lone) && lone[j].follows(lone[j-1]) {
			sameLine = sameLine && lone[j].first.line() == lone[i].first.line()
			j++
		}
		first, last := lone[i].b.round.number, lone[j-1].b.round.number
		switch {
		case j-i > 2 && sameLine:
			hints = append(hints, fmt.Sprintf("rounds %d–%d have one key each, fetched by one task in a loop at %s: if the keys do not depend on each other, Map makes it one round",
				first, last, lone[i].first.line()))
		case j-i > 1 && !sameLine:
			var sources, lines []string
			for _, a := range lone[i:j] {
				sources, lines = append(sources, a.t.name), append(lines, a.first.line())
			}
			hints = append(hints, fmt.Sprintf("%s (%s) are fetched one after the other by one task: if they do not depend on each other, %s %s",
				enumerate(sources), strings.Join(lines, ", "), combinators[min(j-i, 4)], saves(j-i-1)))
		}
		i = j
	}
	return append(hints, t.waits()...)
}

var combinators = map[int]string{2: "Two", 3: "Three", 4: "Together"}

func saves(rounds int) string {
	if rounds == 1 {
		return "saves a round"
	}
	return fmt.Sprintf("saves %d rounds", rounds)
}

func enumerate(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// lone returns the requests that are alone in their round, in the order of the rounds.
func (t *Trace) lone() (lone []*request) {
	inRound := map[int]int{}
	for _, b := range t.sent {
		inRound[b.round.number] += len(b.requests)
	}
	for _, b := range t.sent {
		if a := b.requests[0]; b.round.number > 0 && inRound[b.round.number] == 1 && a.first != nil {
			lone = append(lone, a)
		}
	}
	return lone
}

// follows reports whether one task made both requests, q in the round after p.
func (q *request) follows(p *request) bool {
	return q.b.round.number == p.b.round.number+1 && q.first.because == p && q.first.task == p.first.task
}

// waits returns hints about sources that are much slower than the rest of their round.
func (t *Trace) waits() (hints []string) {
	told := map[string]bool{}
	for i, slow := range t.sent {
		rest, tasks := time.Duration(0), map[*trail]bool{}
		for _, b := range t.sent {
			if b.round.number != slow.round.number || b == slow {
				continue
			}
			rest = max(rest, b.to)
			for _, a := range b.requests {
				for m := a.first; m != nil; m = m.next {
					tasks[m.task] = true
				}
			}
		}
		took := slow.to - slow.from
		if slow.round.number == 0 || slow.d.eager || len(tasks) == 0 || told[slow.t.name] || took < 5*time.Millisecond || slow.to-rest < took/2 || i == len(t.sent)-1 {
			continue
		}
		told[slow.t.name] = true
		hints = append(hints, fmt.Sprintf("%s answers in %s, %s waited only for it in round %d: see Eager", slow.t.name, short(took), count(len(tasks), "task"), slow.round.number))
	}
	return hints
}

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

// line is where the Get is in the user's code, or else where its combinator is.
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

// ours reports whether a function is of this package, or of those that it runs tasks with.
func ours(function string) bool {
	for _, prefix := range []string{"fetch.", "lazy.", "suspend.", "internal/", "adapters/"} {
		if strings.HasPrefix(function, "github.com/braidgo/braid/"+prefix) {
			return true
		}
	}
	return strings.HasPrefix(function, "runtime.") || strings.HasPrefix(function, "iter.")
}

// traced returns b as the Trace shows it.
func (b *sent) traced() TracedBatch {
	t := TracedBatch{Round: b.round, Source: b.source, Keys: len(b.requests), Start: b.from, End: b.to}
	first, asked := map[string]int{}, map[string]int{} // how many keys each label made, and asked for
	seen := map[place]bool{}
	for _, a := range b.requests {
		of := map[string]bool{}
		if a.first != nil {
			first[a.first.label]++
		}
		for m := a.first; m != nil; m = m.next {
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
	last := slices.MaxFunc(t.sent, func(a, b *sent) int { return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.to, b.to)) })
	a := last.latest()
	for a != nil && a.first != nil {
		m := a.first
		steps = append(steps, TracedStep{Source: a.sent.source, Key: a.key, Keys: len(a.sent.requests), Round: a.sent.round, Line: m.line()})
		a = m.because
	}
	slices.Reverse(steps)
	return steps
}

// latest returns the request that had to wait longest to be asked.
func (b *sent) latest() (a *asked) {
	var before *asked
	for _, x := range b.requests {
		if x.first == nil {
			continue
		}
		if y := x.first.because; a == nil || before.later(y) != before {
			a, before = x, y
		}
	}
	return a
}

const barWidth = 30

// String draws the rounds: for each batch its source, its keys, its time, its labels and its lines. Below are the critical path,
// which tells the number of rounds, and the hints.
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

// bar is when b was open, as a part of the whole.
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

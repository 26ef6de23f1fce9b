package census

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// String returns s as text: the deadlocks, the waiting tasks, the tasks that do not wait, and the tree of scopes with their
// members. Tasks that wait at the same line for the same objects are listed together, and so are scopes that were opened by
// the same line in the same scopes, so that thousands of tasks take only a few lines.
func (s Snapshot) String() string {
	var b strings.Builder
	fmt.Fprintln(&b, s.title())
	if !s.On {
		return b.String()
	}
	for _, d := range s.Deadlocks {
		fmt.Fprintf(&b, "\n%s\n", d.title())
		for _, l := range d.Cycle {
			fmt.Fprintf(&b, "  %s\n    %s\n", l.waitText(s.At), l.because(s.At))
		}
	}
	waiting, others := s.groups(), s.others()
	if len(waiting) > 0 {
		fmt.Fprintf(&b, "\nwaiting\n")
	}
	for _, g := range waiting {
		fmt.Fprintf(&b, "  %s\n", g.title(s.At))
		for _, line := range s.details(g) {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "\nnot waiting\n")
	}
	for _, t := range others {
		fmt.Fprintf(&b, "  %s\n", t.title(s.At))
		for _, h := range t.Holds {
			fmt.Fprintf(&b, "    %s\n", h.text(s.At))
		}
	}
	if len(s.Scopes) > 0 {
		fmt.Fprintf(&b, "\nscopes\n")
	}
	for _, x := range s.tree() {
		x.writeTree(&b, "  ", s.At)
	}
	return b.String()
}

func (s Snapshot) title() string {
	if !s.On {
		return "census: off. census.Start switches it on."
	}
	waiting := 0
	for _, t := range s.Tasks {
		if t.Waits != nil {
			waiting++
		}
	}
	return fmt.Sprintf("census: %d waiting, %d not waiting, %s; on for %s",
		waiting, len(s.Tasks)-waiting, count(len(s.Deadlocks), "deadlock"), ago(s.At, s.Since))
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// ago returns the time between since and at, rounded to about three digits.
func ago(at, since time.Time) string {
	d := max(0, at.Sub(since))
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			if unit == time.Minute {
				return d.Round(time.Second).String()
			}
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

func (d Deadlock) title() string {
	text := "deadlock: " + count(len(d.Cycle), "task")
	if d.Possible {
		text = "possible " + text
	}
	if len(d.Cycle) == 1 {
		text += " waits for itself"
	} else {
		text += " wait for each other"
	}
	if d.Behind > 0 {
		text += fmt.Sprintf(", and %d more tasks wait for these", d.Behind)
	}
	if d.MayEnd {
		text += "; a context may end it"
	}
	return text
}

func (l Link) waitText(at time.Time) string {
	return fmt.Sprintf("%s waits for %s: %s, %s", l.Task, l.For, l.Waits.where(), ago(at, l.Waits.Since))
}

func (l Link) because(at time.Time) string {
	if l.Holder == nil {
		return l.Next + " also waits for it, and is ahead in the queue"
	}
	return l.Holder.text(at)
}

func (w Wait) where() string { return fmt.Sprintf("%s at %s", w.Operation, w.At) }

func (h Holder) text(at time.Time) string {
	text := h.Task
	if h.Ended {
		text += ", which has ended,"
	}
	if h.Name != "" {
		text += fmt.Sprintf(", actor %q,", h.Name)
	}
	if h.Owes {
		return text + " must reply"
	}
	return fmt.Sprintf("%s has held %s for %s: taken at %s", text, permits(h.N), ago(at, h.Since), h.At)
}

func (h Hold) text(at time.Time) string {
	text := fmt.Sprintf("has held %s for %s: taken at %s", h.Object, ago(at, h.Since), h.At)
	switch {
	case h.Waiting == 1:
		text += "; 1 waits for it"
	case h.Waiting > 1:
		text += fmt.Sprintf("; %d wait for it", h.Waiting)
	}
	return text
}

func permits(n uint64) string {
	switch {
	case n == 1:
		return "it"
	case n > 1<<62:
		return "it for writing"
	}
	return fmt.Sprintf("%d of it", n)
}

func (t Task) title(at time.Time) string {
	text := t.label()
	if t.Ended {
		text += ", a task of which has ended"
	}
	if t.Began != nil {
		text += fmt.Sprintf(", %s old, of %s", ago(at, t.Began.Since), t.Began.At)
	}
	return text
}

// others returns the tasks that do not wait.
func (s Snapshot) others() (all []Task) {
	for _, t := range s.Tasks {
		if t.Waits == nil {
			all = append(all, t)
		}
	}
	return all
}

// A group contains the tasks of one scheduler that wait at the same line for the same objects. The first task has waited
// the longest.
type group struct {
	key   string
	tasks []Task
}

// groups returns the groups of waiting tasks, the largest group first.
func (s Snapshot) groups() (all []group) {
	return groupsOf(s.Tasks, func(w *Wait) (key string) {
		for _, o := range w.For {
			key += "\x00" + o.Name
		}
		return key
	})
}

// groupsOf returns the groups of waiting tasks for which more returns the same text, too, the largest group first.
func groupsOf(tasks []Task, more func(w *Wait) string) (all []group) {
	index := map[string]int{}
	for _, t := range tasks {
		if t.Waits == nil {
			continue
		}
		key := fmt.Sprint(t.Goroutine == 0, t.Scheduler, t.Waits.where()) + more(t.Waits)
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, group{key: key})
		}
		all[i].tasks = append(all[i].tasks, t)
	}
	slices.SortStableFunc(all, func(x, y group) int { return cmp.Compare(len(y.tasks), len(x.tasks)) })
	return all
}

func (g group) title(at time.Time) string {
	t := g.tasks[0]
	return fmt.Sprintf("%s: %s, %s", g.tasksText(), t.Waits.where(), ago(at, t.Waits.Since))
}

func (g group) tasksText() string {
	t := g.tasks[0]
	text := count(len(g.tasks), "goroutine")
	switch {
	case t.Goroutine == 0:
		text = count(len(g.tasks), "Then") + " on " + t.Scheduler
	case len(g.tasks) == 1:
		text = t.label()
	case t.Scheduler != "":
		text = count(len(g.tasks), "task") + " of " + t.Scheduler
	}
	return text
}

// details returns lines for the objects of the waits, their holders, the scope of the tasks, and the tasks.
func (s Snapshot) details(g group) (lines []string) {
	t, at := g.tasks[0], s.At
	for _, o := range t.Waits.For {
		lines = append(lines, "for "+o.Name)
		for _, h := range o.Holders {
			lines = append(lines, "  "+h.text(at))
		}
	}
	if in := s.memberOf(g.tasks); in != "" {
		lines = append(lines, in)
	}
	const most = 8
	if len(g.tasks) == 1 {
		for _, h := range t.Holds {
			lines = append(lines, h.text(at))
		}
		return lines
	}
	if t.Goroutine == 0 {
		return lines
	}
	var ids []string
	for i, t := range g.tasks {
		if i == most {
			ids = append(ids, fmt.Sprintf("and %d more", len(g.tasks)-most))
			break
		}
		ids = append(ids, fmt.Sprint(t.Goroutine))
	}
	lines = append(lines, "goroutine "+strings.Join(ids, ", "))
	for _, t := range g.tasks {
		for _, h := range t.Holds {
			lines = append(lines, fmt.Sprintf("%s %s", t.ID, h.text(at)))
			if len(lines) > 4*most {
				return append(lines, "and more")
			}
		}
	}
	return lines
}

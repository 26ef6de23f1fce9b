package census

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/ledger"
)

// A Scope is a Scope or Group of package scope that has not ended.
type Scope struct {
	ID        uint64 // a unique number
	Parent    uint64 `json:",omitempty"` // the ID of the scope around this one; 0 if unknown, or if there is none
	Name      string // such as scope.Scope "server"; see the function Name
	Operation string // the call in the program that opened it, such as "scope.Run"; "" if the census was off then
	At        Frame  // the line of the call
	Since     time.Time
}

// scopes adds the scopes to s, and to each task of s the scope of which it is a member.
func (t *taker) scopes(s *Snapshot, all []ledger.Scope, of map[int64]uint64) {
	for _, l := range all {
		c := t.resolve(l.Stack)
		s.Scopes = append(s.Scopes, Scope{l.Seq, l.Parent, t.name(l.Addr, kindOf(l.Kind)), c.operation, c.at, l.Since})
	}
	slices.SortFunc(s.Scopes, func(x, y Scope) int { return cmp.Compare(x.ID, y.ID) })
	for i := range s.Tasks {
		s.Tasks[i].Scope = of[s.Tasks[i].Goroutine]
	}
}

func (s Snapshot) scope(id uint64) (Scope, bool) {
	i, ok := slices.BinarySearchFunc(s.Scopes, id, func(x Scope, id uint64) int { return cmp.Compare(x.ID, id) })
	if !ok {
		return Scope{}, false
	}
	return s.Scopes[i], true
}

// memberOf returns a text about the scope of tasks and the scopes around it, or "" if it is unknown.
func (s Snapshot) memberOf(tasks []Task) string {
	ids := map[uint64]bool{}
	for _, t := range tasks {
		if _, ok := s.scope(t.Scope); ok {
			ids[t.Scope] = true
		}
	}
	if len(ids) > 1 {
		return fmt.Sprintf("members of %d scopes", len(ids))
	}
	var names []string
	for id := range ids {
		for x, ok := s.scope(id); ok; x, ok = s.scope(x.Parent) {
			names = append(names, x.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "member of " + strings.Join(names, ", inside ")
}

// A branch of the tree of scopes has the scopes that were opened by the same line in the same scopes, and have no name.
type branch struct {
	scopes []Scope
	tasks  []Task // the members
	inner  []branch
}

// tree returns the scopes without a known parent, with all the others inside, the oldest first.
func (s Snapshot) tree() []branch {
	inside, members := map[uint64][]Scope{}, map[uint64][]Task{}
	for _, x := range s.Scopes {
		if _, ok := s.scope(x.Parent); !ok {
			x.Parent = 0
		}
		inside[x.Parent] = append(inside[x.Parent], x)
	}
	for _, t := range s.Tasks {
		members[t.Scope] = append(members[t.Scope], t)
	}
	return branches(inside[0], inside, members)
}

func branches(scopes []Scope, inside map[uint64][]Scope, members map[uint64][]Task) (all []branch) {
	index := map[string]int{}
	for _, x := range scopes {
		key := fmt.Sprint(x.Operation, x.At)
		if x.At == (Frame{}) || strings.Contains(x.Name, `"`) {
			key = x.Name
		}
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, branch{})
		}
		all[i].scopes = append(all[i].scopes, x)
	}
	for i := range all {
		var in []Scope
		for _, x := range all[i].scopes {
			in = append(in, inside[x.ID]...)
			all[i].tasks = append(all[i].tasks, members[x.ID]...)
		}
		all[i].inner = branches(in, inside, members)
	}
	return all
}

func (b branch) title(at time.Time) string {
	x := b.scopes[0]
	text := x.Name
	if len(b.scopes) > 1 {
		text = count(len(b.scopes), "scope")
	}
	if x.At != (Frame{}) {
		text += fmt.Sprintf(" of %s at %s, %s", x.Operation, x.At, ago(at, x.Since))
	}
	return text
}

// lines returns a line for the members that wait at the same line of the program, for whatever objects.
func (b branch) lines(at time.Time) (lines []string) {
	const most = 16
	for _, g := range groupsOf(b.tasks, func(*Wait) string { return "" }) {
		if len(lines) == most {
			lines = append(lines, "and more")
			break
		}
		lines = append(lines, g.title(at))
	}
	if n := len(Snapshot{Tasks: b.tasks}.others()); n > 0 {
		lines = append(lines, count(n, "task")+", not waiting")
	}
	return lines
}

// writeTree writes the branch to w, each level of the tree deeper than the one around it.
func (b branch) writeTree(w *strings.Builder, indent string, at time.Time) {
	fmt.Fprintf(w, "%s%s\n", indent, b.title(at))
	indent += "  "
	for _, line := range b.lines(at) {
		fmt.Fprintf(w, "%s%s\n", indent, line)
	}
	for _, in := range b.inner {
		in.writeTree(w, indent, at)
	}
}

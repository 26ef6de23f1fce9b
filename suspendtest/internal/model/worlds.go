package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A path is a list of choices. The method nextPath changes the last choice, so that the next repetition takes another path.
type path struct {
	nth, of []int
	at      int
}

func (p *path) choose(n int) int {
	if n <= 1 {
		return 0
	}
	if p.at == len(p.nth) {
		p.nth, p.of = append(p.nth, 0), append(p.of, n)
	}
	p.at++
	return p.nth[p.at-1]
}

func (p *path) nextPath() bool {
	for i := len(p.nth) - 1; i >= 0; i-- {
		if p.nth[i]+1 < p.of[i] {
			p.nth[i]++
			p.nth, p.of = p.nth[:i+1], p.of[:i+1]
			return true
		}
	}
	return false
}

// Worlds holds the states that are possible after all events so far.
type Worlds struct {
	all  map[string]*World
	ops  []*op
	seen set  // the ids of operations that have returned
	more bool // the worlds that can follow have not been added
}

func newWorlds(objs []Object) *Worlds {
	w := &World{arriving: -1}
	for _, o := range objs {
		w.objs = append(w.objs, o.Copy())
	}
	return &Worlds{all: map[string]*World{"": w}}
}

// each calls f for all worlds, and removes the worlds for which f returns false.
func (s *Worlds) each(f func(w *World) (keep bool)) {
	old := s.all
	s.all = make(map[string]*World, len(old))
	for _, w := range old {
		if f(w) {
			s.all[w.key(s.seen)] = w
		}
	}
}

// expand adds all worlds that can follow from the present worlds.
func (s *Worlds) expand() {
	if !s.more {
		return
	}
	s.more = false
	todo := slices.Collect(maps.Values(s.all))
	for len(todo) > 0 {
		w := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.atRest() {
			continue
		}
		for _, next := range w.successors() {
			if k := next.key(s.seen); s.all[k] == nil {
				s.all[k] = next
				todo = append(todo, next)
			}
		}
	}
}

// start adds an operation. If cancelled is true, the operation's context has already ended.
func (s *Worlds) start(o *op, cancelled bool) {
	s.ops = append(s.ops, o)
	s.more = true
	s.each(func(w *World) bool {
		w.ops = s.ops
		w.ended = append(w.ended, "")
		if w.coming.add(o.id); cancelled {
			w.cancelled.add(o.id)
		}
		return true
	})
}

// cancel requests the cancellation of an operation.
func (s *Worlds) cancel(id int) {
	if !s.seen.has(id) {
		s.more = true
		s.each(func(w *World) bool { w.leaving.add(id); return true })
	}
}

// returned records the result of an operation, and returns an error if the result is impossible.
func (s *Worlds) returned(id int, result string) error {
	s.expand()
	could := map[string]bool{}
	s.seen.add(id)
	s.each(func(w *World) bool {
		could[w.ended[id]] = true
		return w.ended[id] == result
	})
	if len(s.all) == 0 {
		return fmt.Errorf("%s returned %q, which is impossible: %s", s.ops[id].name, result, list(could))
	}
	return nil
}

// rest returns an error if a task can run in every world. If sure is true, the caller has verified that no task can run, and rest drops
// the worlds in which a task can run.
func (s *Worlds) rest(sure bool) error {
	s.expand()
	could := map[string]bool{}
	found := false
	for _, w := range s.all {
		if !w.atRest() {
			continue
		}
		var more []string
		for id, r := range w.ended {
			if r != "" && !s.seen.has(id) {
				more = append(more, fmt.Sprintf("%s must return %q", s.ops[id].name, r))
			}
		}
		found = found || len(more) == 0
		could[strings.Join(more, " and ")] = true
	}
	if !found {
		return fmt.Errorf("no task can run, but %s", list(could))
	}
	if sure {
		s.each(func(w *World) bool {
			for id, r := range w.ended {
				if r != "" && !s.seen.has(id) {
					return false
				}
			}
			return w.atRest()
		})
	}
	return nil
}

func list(could map[string]bool) string {
	var all []string
	for s := range could {
		if s == "" {
			s = "it waits"
		}
		all = append(all, s)
	}
	slices.Sort(all)
	return strings.Join(all, ", or ")
}

// name returns the name of an operation in a printed program.
func name(id int) string {
	if id < 26 {
		return string(rune('a' + id))
	}
	return name(id/26-1) + name(id%26)
}

package explore

import "slices"

// bounded is the search with a bound on preemptions, which may be none.
type bounded struct {
	e           *explorer
	path        []choice
	made        int // choices
	w           *World
	preempted   int
	cancelled   int
	interrupted *task // by the canceller whose turn it is
	options     []*task
	pct         *pct // nil: all runs are made
}

func (b *bounded) begin(w *World) {
	b.w, b.made, b.preempted, b.cancelled, b.interrupted = w, 0, 0, 0, nil
	if b.pct != nil && len(b.path) == 0 {
		b.pct.begin(b.e.Depth)
	}
}

func (b *bounded) add(_, t *task) { t.id = len(b.w.tasks) - 1 }

func (b *bounded) replay(path []choice) { b.path = path }

func (b *bounded) choices() []choice { return b.path }

func (b *bounded) next() bool {
	if b.pct != nil {
		b.path = b.path[:0]
		return true
	}
	for i := len(b.path) - 1; i >= 0; i-- {
		if b.path[i].nth+1 < b.path[i].of {
			b.path[i].nth++
			b.path = b.path[:i+1]
			return true
		}
	}
	return false
}

func (b *bounded) choose(of int) int {
	if of > 1 && b.pct != nil && b.made == len(b.path) {
		b.path = append(b.path, choice{b.pct.IntN(of), of})
	}
	return b.nth(of)
}

// chooseTask is choose for tasks.
func (b *bounded) chooseTask(of []*task) *task {
	if b.pct != nil && b.made == len(b.path) {
		if nth := b.pct.pick(of); len(of) > 1 {
			b.path = append(b.path, choice{nth, len(of)})
		}
	}
	return of[b.nth(len(of))]
}

// nth is the next choice, the first if there is none yet.
func (b *bounded) nth(of int) int {
	if of == 1 {
		return 0
	}
	i := b.made
	b.made++
	if i == len(b.path) {
		b.path = append(b.path, choice{0, of})
		return 0
	}
	c := &b.path[i]
	if c.of == 0 {
		c.of = of
	}
	if c.of != of || c.nth >= of {
		b.w.fail(otherChoices)
		return 0
	}
	return c.nth
}

// others reports whether a task beside last could run.
func (b *bounded) others(last *task) bool {
	return slices.ContainsFunc(b.w.tasks, func(t *task) bool { return t != last && t.eligible() })
}

// holdsBack reports whether a task that can run is not among the options, as it has yielded too often.
func (b *bounded) holdsBack(options []*task) bool {
	for _, t := range b.w.tasks {
		if len(t.starved) > 0 && t.enabled() && !slices.Contains(options, t) && !t.eligible() {
			return true
		}
	}
	return false
}

func (b *bounded) mayCancel() bool {
	return b.e.Cancellations < 0 || b.cancelled < b.e.Cancellations
}

func (b *bounded) pick(last *task) *task {
	w := b.w
	o := b.options[:0]
	if c := b.interrupted; c != nil && last == nil { // the canceller waits, or has ended
		last = c
	}
	preempting := last != nil && last.eligible()
	if preempting {
		o = append(o, last)
	}
	point := preempting && b.e.Points
	if !preempting || b.e.Preemptions < 0 || b.preempted < b.e.Preemptions {
		for _, may := range []func(*task) bool{(*task).eligible, (*task).enabled} {
			for _, t := range w.tasks {
				if t != last && may(t) || t == last && !preempting && may(t) {
					o = append(o, t)
				}
			}
			if len(o) > 0 {
				break
			}
		}
	}
	busy := len(o) > 0
	b.e.cut.Preemptions = b.e.cut.Preemptions || busy && preempting && len(o) == 1 && b.e.Preemptions >= 0 && b.others(last)
	b.e.cut.Yields = b.e.cut.Yields || !b.e.Fine && busy && b.holdsBack(o)
	if !busy && !w.allWait() {
		return nil
	}
	for _, t := range w.tasks {
		if c := t.cancels; c != nil && !t.begun && c.used && !c.t.ended {
			switch {
			case c.never():
			case busy && !b.mayCancel():
				b.e.cut.Cancellations = true
			case point && b.e.Preemptions >= 0 && b.preempted >= b.e.Preemptions:
				b.e.cut.Preemptions = true
			case busy || c.t.parked:
				o = append(o, t)
			}
		}
	}
	b.options = o
	if len(o) == 0 {
		w.deadlock()
		return nil
	}
	t := b.chooseTask(o)
	switch {
	case w.failure != "":
		return nil
	case !t.begun && t.cancels != nil && busy:
		b.cancelled++
		b.interrupted = last // and goes on afterwards, unless it is preempted
		if point {
			b.preempted++
		}
	case !t.begun && t.cancels != nil:
	case preempting && t != last:
		b.preempted++
	}
	if t.begun {
		b.interrupted = nil
	}
	t.begun = true
	for _, u := range w.tasks {
		delete(u.starved, t)
	}
	for u := range t.starved {
		if !u.enabled() {
			delete(t.starved, u)
		}
	}
	return t
}

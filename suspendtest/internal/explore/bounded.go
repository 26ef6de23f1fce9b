package explore

import "slices"

// bounded is the search with a bound on preemptions, which may be Unlimited. It executes each run once, in the order of the number of
// preemptions, so that the first failure has as few preemptions as possible. A run with n preemptions begins like a run with n-1, up to its
// last preemption.
type bounded struct {
	e           *explorer
	level       int      // the number of preemptions in the current runs
	now, later  []string // beginnings of the runs that are left at this level, and of the runs at the next level
	path        []choice
	begun       int // the number of choices in path that come from a beginning
	made        int // the number of choices made in this run
	w           *World
	preempted   int
	cancelled   int
	interrupted *task // the task that the current canceller interrupts
	options     []*task
	pct         *pct // chooses random runs; nil means that all runs are executed
}

func (b *bounded) beginRun(w *World) {
	b.w, b.made, b.preempted, b.cancelled, b.interrupted = w, 0, 0, 0, nil
	if b.pct != nil && len(b.path) == 0 {
		b.pct.reset(b.e.Depth)
	}
}

func (b *bounded) add(_, t *task) { t.id = len(b.w.tasks) - 1 }

func (b *bounded) replay(path []choice) { b.path = path }

// choices returns the choices for a replay. After its last preemption, a replay chooses only among options that are not preemptions.
func (b *bounded) choices() (made []choice, preemptions int) {
	kept := 0
	for i, c := range b.path {
		if c.nth >= c.free && c.of > 0 {
			preemptions++
			kept = i + 1
		}
	}
	made = append(made, b.path[:kept]...)
	for _, c := range b.path[kept:] {
		if c.free > 1 {
			made = append(made, c)
		}
	}
	return made, preemptions
}

func (b *bounded) nextRun() bool {
	if b.pct != nil {
		b.path = b.path[:0]
		return true
	}
	for i := len(b.path) - 1; i >= b.begun; i-- {
		if b.path[i].nth+1 < b.path[i].free {
			b.path[i].nth++
			b.path = b.path[:i+1]
			return true
		}
		b.preempt(i)
	}
	if len(b.now) == 0 {
		b.e.level = b.level
		b.level++
		b.now, b.later = b.later, nil
	}
	if len(b.now) == 0 {
		return false
	}
	b.path = b.path[:0]
	for _, nth := range b.now[0] {
		b.path = append(b.path, choice{nth: int(nth)})
	}
	b.now, b.begun = b.now[1:], len(b.path)
	return true
}

// preempt adds a beginning to b.later, for the next level, for each preemption that is possible at choice i.
func (b *bounded) preempt(i int) {
	c := b.path[i]
	for nth := c.free; nth < c.of; nth++ {
		if b.level == b.e.Preemptions {
			b.e.cut.Preemptions = true
			return
		}
		if b.e.Executions > 0 && len(b.later) > b.e.Executions-b.e.runs {
			return // b.later has enough beginnings for all runs that Executions still allows
		}
		var s []rune
		for _, c := range b.path[:i] {
			s = append(s, rune(c.nth))
		}
		b.later = append(b.later, string(append(s, rune(nth))))
	}
}

func (b *bounded) choose(of int) int {
	if of > 1 && b.pct != nil && b.made == len(b.path) {
		b.path = append(b.path, choice{b.pct.IntN(of), of, of})
	}
	return b.nth(of, of)
}

// chooseTask chooses one of the given tasks. The parameter free is the number of tasks, at the beginning of the slice, whose choice is not
// a preemption.
func (b *bounded) chooseTask(of []*task, free int) *task {
	if b.pct != nil && b.made == len(b.path) {
		if nth := b.pct.pick(of); len(of) > 1 {
			b.path = append(b.path, choice{nth, len(of), free})
		}
	}
	return of[b.nth(len(of), free)]
}

// nth returns the next choice in b.path. At the end of b.path, nth chooses the first option and appends this choice.
func (b *bounded) nth(of, free int) int {
	if of == 1 {
		return 0
	}
	i := b.made
	b.made++
	if i == len(b.path) {
		b.path = append(b.path, choice{0, of, free})
		return 0
	}
	c := &b.path[i]
	if c.of == 0 {
		c.of, c.free = of, free
	}
	if c.of != of || c.nth >= of {
		b.w.fail(otherChoices)
		return 0
	}
	return c.nth
}

// holdsBack reports whether a runnable task is missing from options because it has yielded too often.
func (b *bounded) holdsBack(options []*task) bool {
	for _, t := range b.w.tasks {
		if len(t.starved) > 0 && t.enabled() && !slices.Contains(options, t) && !t.eligible() {
			return true
		}
	}
	return false
}

// spent reports whether the run is a replay that has used up its preemptions.
func (b *bounded) spent() bool {
	return b.e.Replay != "" && b.e.Preemptions >= 0 && b.preempted >= b.e.Preemptions
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
	free := 1
	if !preempting || !b.spent() {
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
	b.e.cut.Yields = b.e.cut.Yields || !b.e.Fine && busy && b.holdsBack(o)
	if !busy && !w.allWait() {
		return nil
	}
	if !preempting {
		free = len(o)
	}
	for _, t := range w.tasks {
		if c := t.cancels; c != nil && !t.begun && c.used && !c.t.ended && !c.never() {
			switch {
			case busy && !b.mayCancel():
				b.e.cut.Cancellations = true
			case point && b.spent():
			case point:
				o = append(o, t)
			case busy || c.t.parked:
				o = slices.Insert(o, free, t)
				free++
			}
		}
	}
	b.options = o
	if len(o) == 0 {
		w.deadlock()
		return nil
	}
	t := b.chooseTask(o, free)
	switch {
	case w.failure != "":
		return nil
	case !t.begun && t.cancels != nil && busy:
		b.cancelled++
		b.interrupted = last // the interrupted task continues after the cancellation, unless it is preempted
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

package explore

import "unsafe"

// A reduction is a search that executes one run from each class of runs that differ only in the order of accesses that commute. The
// algorithm is source-DPOR with sleep sets (Abdulla, Aronis, Jonsson and Sagonas, Optimal dynamic partial order reduction, POPL 2014). It
// improves on Flanagan and Godefroid, Dynamic partial-order reduction for model checking software (POPL 2005).
//
// A step is everything that a task does from one access to the next. Two steps are dependent if they belong to the same task, or if both
// access the same variable and at least one step changes it. A failed compare-and-swap and a store of the present value change nothing.
// Each step has a clock, which records the steps that come before it in every equivalent run. Two dependent steps of different tasks are a
// race if no other step comes between them in this order. If the second step could also be taken first, the search selects a task to be
// tried in place of the first step, so that a later run reverses the race. A task that has been tried in place of a step sleeps during the
// later attempts there, until a dependent step is taken. Before such a step, the task could only repeat earlier runs.
//
// The following accesses are special:
//   - Park takes the permit, and is possible only while the permit is set. Unpark sets the permit.
//   - Accesses to a lock race only if both are calls of Lock. An Unlock cannot happen before its Lock, and comes before the next Lock.
//   - The contexts to be cancelled are chosen at the beginning of a run. Their cancellers may run at any time. A task may keep a Done
//     channel and read the channel later, unseen by the search. Each step that writes therefore counts as a read of the channel. Package
//     suspend reads it after the store that opens its word.
//   - When all tasks wait, the search chooses a task and cancels it, because nothing else can happen. All steps before this choice come
//     before all steps after it.
//   - Yield is a step without an access, because a task can be made to wait at every access.
//   - A task that goes round in a loop waits until another task changes what the loop reads; see loop. Its next step then counts as a read
//     of all of this. If no other task can take a step, all loops go on, and all earlier steps come before all later steps.
type reduction struct {
	e      *explorer
	stack  []step
	forced []choice       // the choices of a replay
	ids    map[[2]int]int // the id of each task, by the id of its parent and its number among the parent's tasks
	used   procs          // contexts at which a task has looked in any run
	spared procs          // contexts that were not cancelled in some run because of the bound
	fresh  int            // the index of the first step that no earlier run has taken

	// The fields below belong to the current run.
	w        *World
	depth    int   // the number of steps taken so far
	previous int   // the task that took the last step; -1 means none
	current  int   // the step that is being taken; -1 means none
	unlocked int   // one plus the step that last unlocked the lock that the current step takes
	born     procs // the tasks that the current step has started
	tasks    [maxProcs]*task
	started  [maxProcs + 1]int // the number of tasks that each task has started; the last entry is for the program itself
	clocks   [maxProcs]clock
	things   map[unsafe.Pointer]*thing
	spare    []*thing
	found    []int       // steps that conflict with the current step
	acts     []footprint // the accesses of the current step
	sleep    procs       // the tasks that sleep after the current step
	quiet    procs       // the tasks in sleep whose access changed nothing
	forks    int         // the number of choices made in a replay
}

// A step is an entry of the stack. It holds a task's step and the state in which the task was chosen. If the field other is set, the entry
// instead holds a choice that is made during the step below it in the stack.
type step struct {
	enabled procs
	todo    procs // tasks that are to be tried here, or have been tried
	done    procs // tasks that have been tried
	sleep   procs // tasks that need not be tried
	quiet   procs // tasks of done and sleep whose access changed nothing
	task    int
	changed bool // the step has changed something in a run that begins like the current run
	could   bool // the step is an Unpark, but the matching Park was also possible before it
	clock   clock

	other   bool
	choice  choice
	context int // the context whose cancellation is chosen; -1 means another kind of choice
}

func newReduction(e *explorer) *reduction {
	return &reduction{e: e, ids: map[[2]int]int{}, things: map[unsafe.Pointer]*thing{}}
}

func (r *reduction) beginRun(w *World) {
	r.w, r.depth, r.previous, r.current, r.born, r.forks = w, 0, -1, -1, 0, 0
	r.sleep, r.quiet = 0, 0
	clear(r.tasks[:])
	clear(r.clocks[:])
	clear(r.started[:])
	for _, x := range r.things {
		*x = thing{}
		r.spare = append(r.spare, x)
	}
	clear(r.things)
}

// add assigns an id to t that is the same in all equivalent runs.
func (r *reduction) add(parent, t *task) {
	p := maxProcs
	if parent != nil {
		p = parent.id
	}
	key := [2]int{p, r.started[p]}
	r.started[p]++
	id, ok := r.ids[key]
	if !ok {
		if id = len(r.ids); id == maxProcs {
			panic("explore: too many tasks")
		}
		r.ids[key] = id
	}
	t.id = id
	r.tasks[id] = t
	if parent != nil {
		r.born |= one(id)
	}
}

func (r *reduction) thing(at unsafe.Pointer) *thing {
	x := r.things[at]
	if x == nil {
		if n := len(r.spare); n > 0 {
			x, r.spare = r.spare[n-1], r.spare[:n-1]
		} else {
			x = new(thing)
		}
		r.things[at] = x
	}
	return x
}

func (r *reduction) replay(path []choice) { r.forced = path }

func (r *reduction) choices() (made []choice, _ int) {
	previous := -1
	for i := range r.stack[:r.depth] {
		s := &r.stack[i]
		switch {
		case s.other:
			made = append(made, s.choice)
			continue
		case s.enabled.len() > 1:
			made = append(made, choice{nth: s.nth(previous), of: s.enabled.len()})
		}
		previous = s.task
	}
	return made, 0
}

// nth returns the position of the step's task among the enabled tasks. The task previous, which took the last step, comes first.
func (s *step) nth(previous int) int {
	if s.task == previous {
		return 0
	}
	before := s.enabled & (one(s.task) - 1)
	if previous >= 0 && s.enabled.has(previous) {
		return (before &^ one(previous)).len() + 1
	}
	return before.len()
}

// force returns the next choice of a replay, or a random choice if e.random is set.
func (r *reduction) force(of int) (nth int) {
	if r.e.random != nil {
		return r.e.random.IntN(of)
	}
	if of > 1 && r.forks < len(r.forced) {
		nth = r.forced[r.forks].nth
	}
	if of > 1 {
		r.forks++
	}
	if nth >= of {
		r.w.fail(otherChoices)
		return 0
	}
	return nth
}

// nextRun prepares the stack for another run, and reports whether there is another run.
func (r *reduction) nextRun() bool {
	if r.e.random != nil {
		r.stack = r.stack[:0]
		return true
	}
	for len(r.stack) > 0 {
		r.fresh = len(r.stack) - 1
		s := &r.stack[r.fresh]
		if s.other {
			if s.choice.nth+1 < s.choice.of && (s.context < 0 || r.used.has(s.context)) {
				s.choice.nth++
				for r.fresh > 0 && r.stack[r.fresh].other {
					r.fresh-- // the changed choice is part of the step below, which is therefore new, too
				}
				return true
			}
		} else {
			s.done |= one(s.task)
			if !s.changed {
				s.quiet |= one(s.task)
			}
			if left := s.todo &^ s.done &^ s.sleep; left != 0 {
				s.task, s.changed, s.could = left.first(), false, false
				return true
			}
		}
		r.stack = r.stack[:r.fresh]
	}
	r.e.cut.Cancellations = r.used&r.spared != 0
	return false
}

func (r *reduction) choose(of int) int { return r.decide(of, -1) }

func (r *reduction) decide(of, context int) int {
	if of == 1 {
		return 0
	}
	if r.depth == len(r.stack) {
		r.stack = append(r.stack, step{other: true, choice: choice{nth: r.force(of), of: of}, context: context})
	}
	s := &r.stack[r.depth]
	r.depth++
	if !s.other || s.choice.of != of {
		r.w.fail(otherChoices)
		return 0
	}
	return s.choice.nth
}

func (r *reduction) pick(*task) *task {
	w := r.w
	if r.depth == 0 {
		r.chooseCancelled()
	}
	r.commit()
	if w.redundant || w.failure != "" {
		return nil
	}
	var enabled procs
	for id, t := range r.tasks[:len(r.ids)] {
		if t != nil && t.canStep() {
			enabled |= one(id)
		}
	}
	if enabled == 0 {
		enabled = r.loopsGoOn()
	}
	if enabled == 0 {
		r.waitForLocks()
		t := r.idle()
		if t == nil {
			return nil
		}
		enabled = one(t.id)
	}
	if r.depth == len(r.stack) && !r.push(enabled) {
		w.redundant = true
		return nil
	}
	s := &r.stack[r.depth]
	if s.other || s.enabled != enabled {
		w.fail(otherChoices)
		return nil
	}
	r.current, r.previous = r.depth, s.task
	r.depth++
	t := r.tasks[s.task]
	t.act, t.pending, t.quiet, t.begun = t.pending, footprint{}, false, true
	t.awaited, t.awaits = t.awaits, nil
	if t.act.kind == locks {
		r.unlocked = r.thing(t.act.at).unlock
	}
	return t
}

// push adds to the stack a step that no run has taken at this point. It returns false if all enabled tasks sleep.
func (r *reduction) push(enabled procs) bool {
	may := enabled &^ r.sleep
	if may == 0 {
		return false
	}
	s := step{enabled: enabled, sleep: r.sleep, quiet: r.quiet, task: may.first()}
	switch {
	case r.e.Replay != "":
		s.task = 0
		for nth := r.force(enabled.len()); !enabled.has(s.task) || s.nth(r.previous) != nth; {
			s.task++
		}
	case r.e.random != nil:
		for n := r.e.random.IntN(enabled.len()); n > 0; n-- {
			may &= may - 1
		}
		s.task = may.first()
	case r.previous >= 0 && may.has(r.previous):
		s.task = r.previous
	}
	s.todo = one(s.task)
	if r.e.brute && r.tasks[s.task].pending.kind != nothing { // a step without an access commutes with all other steps
		s.todo = enabled
	}
	r.stack = append(r.stack, s)
	return true
}

// chooseCancelled chooses the contexts that are cancelled in this run. Cancelling a context that no task looks at has
// no effect, so a context is chosen only if a task has looked at it in an earlier run with fewer cancellations.
func (r *reduction) chooseCancelled() {
	left := r.e.Cancellations
	for i, c := range r.w.contexts {
		if c.never() {
			continue
		}
		if left == 0 {
			r.spared |= one(i)
		} else if r.decide(2, i) == 1 {
			c.canceller.live = true
			left--
		}
	}
}

// idle is called when no task can take a step. It chooses a waiting task to be cancelled, and returns its canceller.
func (r *reduction) idle() *task {
	w := r.w
	if !w.allWait() {
		return nil
	}
	var who []*taskContext
	for _, c := range w.contexts {
		if c.used && !c.canceller.live && c.t.parked && !c.never() {
			who = append(who, c)
		}
	}
	if len(who) == 0 {
		w.deadlock()
		return nil
	}
	c := who[r.choose(len(who))].canceller
	if w.failure != "" {
		return nil
	}
	c.live = true
	r.joinAll()
	return c
}

// joinAll orders all steps so far before all later steps.
func (r *reduction) joinAll() {
	var all clock
	for i := range r.clocks[:len(r.ids)] {
		all.join(&r.clocks[i], len(r.ids))
	}
	for i := range r.clocks[:len(r.ids)] {
		r.clocks[i] = all
	}
	r.sleep, r.quiet = 0, 0
}

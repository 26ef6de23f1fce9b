package explore

import "unsafe"

// A reduction is the search that makes only one of the runs that differ in nothing but the order of accesses that commute: source-DPOR with
// sleep sets (Abdulla, Aronis, Jonsson and Sagonas, Optimal dynamic partial order reduction, POPL 2014), which improves on Flanagan and
// Godefroid, Dynamic partial-order reduction for model checking software (POPL 2005).
//
// A step is all that a task does from one access to the next. Two steps are dependent if they are of one task, or if both access one
// variable and at least one step changes it. A compare-and-swap that fails changes nothing, nor does a store of the present value. A clock
// for each step says which other steps come before it in every equivalent run. Two dependent steps of different tasks with nothing in
// between are a race. If the second step could also be first, the search notes, for the place of the first step, a task whose step leads to
// a run with the second step first. A task that was tried sleeps in the later attempts at that place, until a step is made that depends on
// it. Before such a step, that task could show nothing new.
//
// Some accesses are special:
//   - Park takes the permit, and can be made only while there is one; Unpark sets it.
//   - Of a lock, only the Locks race: an Unlock cannot come before its Lock. It comes before the next Lock.
//   - Which contexts are cancelled is chosen at the beginning of a run; each canceller is a task then, which may run at
//     any time. A task may keep the Done channel and look at it again, unseen; it is taken to do so in each step
//     that writes, as package suspend does after the store that opens its word.
//   - When all tasks wait, the search chooses which task is cancelled, as nothing else can happen. All steps
//     before that choice come before all steps after it.
//   - Yield has no effect: here a task can always be made to wait.
type reduction struct {
	e      *explorer
	stack  []step
	forced []choice       // choices of a replay
	ids    map[[2]int]int // ids of the tasks, by the task that started them and their number
	used   procs          // contexts that have ever been looked at
	spared procs          // contexts that the bound has ever left alone
	fresh  int            // the first step of this run that no other has made

	// Of this run.
	w        *World
	depth    int // steps of the stack that are made
	previous int // the task that made the last step; -1: none
	current  int // the step that is being made; -1: none
	unlocked int // the step that unlocked the lock which it takes, plus one
	born     procs
	tasks    [maxProcs]*task
	started  [maxProcs + 1]int
	clocks   [maxProcs]clock
	things   map[unsafe.Pointer]*thing
	spare    []*thing
	found    []int       // steps
	acts     []footprint // accesses of the current step
	sleep    procs       // tasks that sleep after the current step
	quiet    procs
	forks    int // choices made in a replay
}

// A step has the state in which it was chosen. If other is set, it is a choice of something else, made within the step below.
type step struct {
	enabled procs
	todo    procs // tasks to be tried here, or tried
	done    procs // tasks tried
	sleep   procs // tasks that need not be tried
	quiet   procs // tasks of done and sleep whose access changed nothing
	task    int
	changed bool  // it has changed something, in one of the runs that begin like this
	could   bool  // it is an Unpark, and the Park could also come first
	clock   clock // the clock after the step

	other   bool
	choice  choice
	context int // the context whose cancellation is chosen; -1 means something else
}

func newReduction(e *explorer) *reduction {
	return &reduction{e: e, ids: map[[2]int]int{}, things: map[unsafe.Pointer]*thing{}}
}

func (r *reduction) begin(w *World) {
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

// add gives t an identity that is the same in all equivalent runs.
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

// nth is the place of the task among those enabled: the task of the last step comes first.
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

// force returns the next choice of a replay.
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

// next prepares the stack for another run, after a run of the whole stack.
func (r *reduction) next() bool {
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
					r.fresh-- // the step that contains the choice is another now
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
	if t.act.kind == locks {
		r.unlocked = r.thing(t.act.at).unlock
	}
	return t
}

// push chooses a task for a step that no run has made here, and reports whether there is such a task.
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
	if r.e.brute && r.tasks[s.task].pending.kind != nothing { // a beginning is as good as any other
		s.todo = enabled
	}
	r.stack = append(r.stack, s)
	return true
}

// chooseCancelled chooses the contexts that are cancelled in this run. A context that no task saw in any
// earlier run, with fewer cancellations, is never seen.
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

// idle chooses the waiting task to be cancelled, when all others have ended.
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
	var all clock
	for i := range r.clocks[:len(r.ids)] {
		all.join(&r.clocks[i], len(r.ids))
	}
	for i := range r.clocks[:len(r.ids)] {
		r.clocks[i] = all
	}
	r.sleep, r.quiet = 0, 0
	return c
}

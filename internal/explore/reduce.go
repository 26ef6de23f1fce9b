package explore

import (
	"math/bits"
	"slices"
	"unsafe"
)

// A reduction is the search that makes one run of those that differ in nothing but the order of accesses that commute:
// source-DPOR with sleep sets (Abdulla, Aronis, Jonsson and Sagonas, Optimal dynamic partial order reduction, POPL 2014),
// which improves on Flanagan and Godefroid, Dynamic partial-order reduction for model checking software (POPL 2005).
//
// A step is what a task does from one access to the next. Two steps are dependent if they are of one task, or if both
// access one thing and one of them changes it; a compare-and-swap that fails, or a store of what is there already, changes
// nothing. A clock for each step says which others come before it in every run that is equivalent. Two dependent steps of
// different tasks with nothing in between are a race. If the second could have come first, a task with which a run begins
// in which it does is put down to be tried where the first was made. What has been tried sleeps from then on, in what is
// tried after it, until a step is made that depends on it: before that, there is nothing that has not been seen.
//
// What is not an ordinary access:
//   - Park takes the permit, and can be made only while there is one; Unpark sets it.
//   - Of a lock, only the Locks race: an Unlock cannot come before its Lock. It comes before the next Lock.
//   - Which contexts are cancelled is chosen at the beginning of a run; each canceller is a task then, which may run at
//     any time. A task may keep the Done channel and look at it again, unseen; it is taken to do so in each step
//     that writes, as package suspend does after the store that opens its word.
//   - When all wait, it is chosen which of them is cancelled, as nothing else can happen. All that was before comes
//     before all that is after.
//   - Yield is nothing: here a task can always be made to wait.
type reduction struct {
	e      *explorer
	stack  []step
	forced []choice       // of a replay
	ids    map[[2]int]int // of the tasks, by who has started them, and as the how manieth
	used   procs          // contexts that have ever been looked at
	fresh  int            // the first step of this run that no other has made

	// Of this run.
	w        *World
	depth    int // of the stack, made so far
	previous int // the task that made the last step; -1: none
	current  int // the step that is being made; -1: none
	unlocked int // where that which it locks was unlocked, plus one
	born     procs
	tasks    [maxProcs]*task
	started  [maxProcs + 1]int
	clocks   [maxProcs]clock
	things   map[unsafe.Pointer]*thing
	spare    []*thing
	found    []int       // steps
	acts     []footprint // of the current step
	sleep    procs       // in the state that it has led to
	quiet    procs
	forks    int // choices made in a replay
}

const maxProcs = 24

// procs is a set of tasks, or of contexts.
type procs uint32

func one(id int) procs          { return 1 << id }
func (s procs) has(id int) bool { return s>>id&1 != 0 }
func (s procs) first() int      { return bits.TrailingZeros32(uint32(s)) }
func (s procs) len() int        { return bits.OnesCount32(uint32(s)) }

// A clock says, for each task, how many of its steps come before.
type clock [maxProcs]uint16

func (c *clock) join(d *clock, n int) {
	for i, k := range d[:n] {
		if k > c[i] {
			c[i] = k
		}
	}
}

// A step has the state in which it was chosen. Or it is a choice of something else, which comes within the step below.
type step struct {
	enabled procs
	todo    procs // to be tried here, or tried
	done    procs // tried
	sleep   procs // not to be tried
	quiet   procs // of done and sleep: those whose access changed nothing
	task    int
	changed bool  // it has changed something, in one of the runs that begin like this
	could   bool  // it is an Unpark, and the Park could have come before it
	clock   clock // after it

	other   bool
	choice  choice
	context int // whose cancellation is chosen; -1: it is something else
}

// A footprint is an access.
type footprint struct {
	at   unsafe.Pointer
	kind accessKind
}

// An access is on one of two sides of a thing.
var (
	side      = [...]uint8{nothing: 0, read: 0, locks: 0, called: 0, write: 1, parks: 1, returned: 1}
	conflicts = [...]uint8{nothing: 0, read: 2, write: 3, parks: 3, locks: 1, called: 2, returned: 1} // with these sides
)

func conflicting(as, bs []footprint) bool {
	for _, a := range as {
		for _, b := range bs {
			if a.at == b.at && b.kind != nothing && conflicts[a.kind]>>side[b.kind]&1 != 0 {
				return true
			}
		}
	}
	return false
}

// A thing is something that is accessed.
type thing struct {
	last   [2][maxProcs]int32 // the last step of each task on each side, plus one
	users  [2]procs           // who has made one
	unlock int                // the last step in which it was unlocked, plus one
}

// reducible is what a task has for the sake of this search.
type reducible struct {
	pending footprint // of its next step
	act     footprint // of its last
	quiet   bool      // that has changed nothing
	looked  []look
	live    bool // it is a canceller that is to run
}

// A look is what a task knows of a context.
type look struct {
	at   *taskContext
	over bool // it has seen it cancelled
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

// add gives t an identity that it has in all runs that are equivalent.
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

func (r *reduction) choices() (made []choice) {
	previous := -1
	for i := range r.stack[:r.depth] {
		s := &r.stack[i]
		switch {
		case s.other:
			made = append(made, s.choice)
			continue
		case s.enabled.len() > 1:
			made = append(made, choice{s.nth(previous), s.enabled.len()})
		}
		previous = s.task
	}
	return made
}

// nth is the place of the task among those enabled: the one that made the last step comes first.
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

// next prepares the stack, all of which has been made.
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
					r.fresh-- // that step is another now
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
	return false
}

func (r *reduction) choose(of int) int { return r.decide(of, -1) }

func (r *reduction) decide(of, context int) int {
	if of == 1 {
		return 0
	}
	if r.depth == len(r.stack) {
		r.stack = append(r.stack, step{other: true, choice: choice{r.force(of), of}, context: context})
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

// push has a task make a step that no run has made here, and reports whether there is one of which that is worth while.
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

// canStep reports whether t can make a step.
func (t *task) canStep() bool {
	switch {
	case t.ended:
		return false
	case t.cancels != nil:
		return t.live
	case t.parked:
		return t.permit || t.spurious < t.w.e.Spurious
	case t.lock != nil:
		return t.lockIsFree()
	}
	return true
}

// commit is called when the current step has been made.
func (r *reduction) commit() {
	if r.current < 0 {
		return
	}
	s := &r.stack[r.current]
	id, n := s.task, len(r.ids)
	t := r.tasks[id]
	r.acts = t.footprints(r.acts[:0], t.act, t.quiet)
	before := r.clocks[id]
	after := before
	r.find(id)
	for _, i := range r.found {
		after.join(&r.stack[i].clock, n)
	}
	if t.act.kind == locks && r.unlocked > 0 {
		after.join(&r.stack[r.unlocked-1].clock, n)
	}
	after[id]++
	s.clock, r.clocks[id] = after, after
	if r.current >= r.fresh && !r.e.brute {
		for _, i := range r.found {
			// A Park that had to wait for this Unpark cannot come before it.
			if r.stack[i].could || t.act.kind != parks {
				r.race(i, r.current, id, &before)
			}
		}
	}
	for _, a := range r.acts {
		x := r.thing(a.at)
		x.last[side[a.kind]][id] = int32(r.current + 1)
		x.users[side[a.kind]] |= one(id)
	}
	for born := r.born; born != 0; born &= born - 1 {
		r.clocks[born.first()].join(&after, n)
	}
	s.changed = s.changed || t.act.kind > read && !t.quiet
	if r.depth == len(r.stack) && !r.e.brute {
		r.fallAsleep(s)
	}
	r.current, r.born = -1, 0
}

// footprints appends what a step of t accesses that begins with a.
func (t *task) footprints(to []footprint, a footprint, quiet bool) []footprint {
	if a.kind == nothing {
		return to
	}
	if a.kind == write {
		if t.w.lazily {
			for _, c := range t.w.contexts {
				if c.canceller.live {
					to = append(to, footprint{c.at(), read})
				}
			}
		} else {
			for _, l := range t.looked {
				if l.at.canceller.live && !l.over && l.at.at() != a.at {
					to = append(to, footprint{l.at.at(), read})
				}
			}
		}
	}
	if a.kind == write && quiet {
		a.kind = read
	}
	return append(to, a)
}

// find finds, among the steps that conflict with those accesses by id, the last ones.
func (r *reduction) find(id int) {
	r.found = r.found[:0]
	for _, a := range r.acts {
		x := r.thing(a.at)
		for k := range uint8(2) {
			if conflicts[a.kind]>>k&1 != 0 {
				for users := x.users[k] &^ one(id); users != 0; users &= users - 1 {
					r.found = append(r.found, int(x.last[k][users.first()]-1))
				}
			}
		}
	}
}

// race sees to it that the step now, by id, which conflicts with those found and has the given clock otherwise, comes
// before the step i in some run, if that can be.
func (r *reduction) race(i, now, id int, before *clock) {
	first := &r.stack[i]
	by := first.task
	at := first.clock[by]
	if at <= before[by] {
		return // as it must
	}
	for _, k := range r.found {
		if k != i && r.stack[k].clock[by] >= at {
			return // there is one in between
		}
	}
	// Of what has been done since and does not come after i, what could be done right there?
	var begun clock
	var initial procs
	comes := func(id int, c *clock) {
		for k, n := range begun[:len(r.ids)] {
			if n > 0 && c[k] >= n {
				return
			}
		}
		initial |= one(id)
	}
	for k := i + 1; k < now; k++ {
		if s := &r.stack[k]; !s.other && s.clock[by] < at && begun[s.task] == 0 {
			comes(s.task, &s.clock)
			begun[s.task] = s.clock[s.task]
		}
	}
	if begun[id] == 0 {
		c := *before
		for _, k := range r.found {
			if r.stack[k].clock[by] < at {
				c.join(&r.stack[k].clock, len(r.ids))
			}
		}
		comes(id, &c)
	}
	switch {
	case initial&(first.todo|first.sleep) != 0:
	case initial&first.enabled != 0:
		first.todo |= one((initial & first.enabled).first())
	default:
		first.todo |= first.enabled
	}
}

// waitForLocks is called when nothing can be done: who waits for a lock then might have had it first.
func (r *reduction) waitForLocks() {
	for id, t := range r.tasks[:len(r.ids)] {
		if t != nil && !t.ended && t.lock != nil && !r.e.brute {
			r.acts = append(r.acts[:0], t.pending)
			r.find(id)
			for _, i := range r.found {
				r.race(i, r.depth, id, &r.clocks[id])
			}
		}
	}
}

// fallAsleep finds what sleeps after s: what slept before, or was tried before, and does not depend on it.
func (r *reduction) fallAsleep(s *step) {
	r.sleep, r.quiet = 0, 0
	var buf [8]footprint
	for may := (s.sleep | s.done) &^ one(s.task); may != 0; may &= may - 1 {
		id := may.first()
		t := r.tasks[id]
		if !conflicting(r.acts, t.footprints(buf[:0], t.pending, s.quiet.has(id))) {
			r.sleep |= one(id)
			r.quiet |= s.quiet & one(id)
		}
	}
}

// chooseCancelled says which contexts are cancelled, whatever comes. Of one that nobody has looked at in any of the runs
// so far, in which fewer were cancelled, nobody will.
func (r *reduction) chooseCancelled() {
	left := r.e.Cancellations
	for i, c := range r.w.contexts {
		if left != 0 && r.decide(2, i) == 1 {
			c.canceller.live = true
			left--
		}
	}
}

// idle chooses who is cancelled of those who wait, all others having ended.
func (r *reduction) idle() *task {
	w := r.w
	if !w.allWait() {
		return nil
	}
	var who []*taskContext
	for _, c := range w.contexts {
		if c.used && !c.canceller.live && c.t.parked {
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

// looksAt is where t looks at c, or adds to what c calls.
func (t *task) looksAt(c *taskContext, kind accessKind) {
	r := t.w.e.search.(*reduction)
	c.used = true
	for i, x := range t.w.contexts {
		if x == c {
			r.used |= one(i)
		}
	}
	i := slices.IndexFunc(t.looked, func(l look) bool { return l.at == c })
	if c.canceller.live && (i < 0 || !t.looked[i].over) {
		t.access(kind, c.at())
	}
	if i < 0 { // what came before did not look
		i = len(t.looked)
		t.looked = append(t.looked, look{at: c})
	}
	t.looked[i].over = c.err != nil
}

func (c *taskContext) at() unsafe.Pointer { return unsafe.Pointer(&c.err) }

func (t *task) parkReduced() {
	t.parked = true
	if t.w.e.tracing && !t.permit {
		t.w.event(t, "suspended at %s", userSite())
	}
	access(t, parks, &t.permit)
	t.parked = false
	if t.permit {
		t.permit = false
	} else {
		t.spurious++
	}
}

// unparkReduced is called by u.
func (t *task) unparkReduced(u *task) {
	if u == nil {
		t.w.fail("%s is woken by no task of the program", t.name)
		return
	}
	r := t.w.e.search.(*reduction)
	if r.current >= 0 {
		r.stack[r.current].could = t.permit || t.spurious < t.w.e.Spurious
	}
	u.quiet = t.permit
	if t.parked && !t.permit {
		t.w.wakes(t)
	}
	t.permit = true
}

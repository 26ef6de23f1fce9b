package explore

// commit is called after the current step has been taken. It computes the clock of the step, and looks for races with earlier steps.
func (r *reduction) commit() {
	if r.current < 0 {
		return
	}
	s := &r.stack[r.current]
	id, n := s.task, len(r.ids)
	t := r.tasks[id]
	r.acts = t.footprints(r.acts[:0], t.act, t.quiet, t.awaited)
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
			if r.couldPrecede(t, i) {
				r.race(i, r.current, id, &before)
			}
		}
	}
	for _, a := range r.acts {
		x := r.thing(a.at)
		x.last[side[a.kind]][id] = int32(r.current + 1)
		x.users[side[a.kind]] |= one(id)
	}
	r.endWaits(id)
	for born := r.born; born != 0; born &= born - 1 {
		r.clocks[born.first()].join(&after, n)
	}
	s.changed = s.changed || t.act.kind > read && !t.quiet
	if r.depth == len(r.stack) && !r.e.brute {
		r.fallAsleep(s)
	}
	r.current, r.born = -1, 0
}

// couldPrecede reports whether the current step, which belongs to t, was possible before step i. A Park that had to wait for this Unpark
// was not, and neither was the step of a loop that had to wait for the change that step i has made.
func (r *reduction) couldPrecede(t *task, i int) bool {
	hadToPark := t.act.kind == parks && !r.stack[i].could
	hadToLoop := t.awaited != nil && t.changes <= 1 && t.changer == i
	return !hadToPark && !hadToLoop
}

// find sets r.found to the last steps of other tasks that conflict with the accesses in r.acts. These accesses belong to the task with the
// given id.
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

// race handles the race between two steps, whose indices are i and now. The later step belongs to the task with the given id, and the
// parameter before is this task's clock before the step. If possible, race ensures that a later run takes the two steps in the opposite
// order.
//
// In the notation of the paper, the run so far is E.t.w.u.t': E are the steps before step i, t is step i, and t' is the later step. An
// example, in which x and y are variables:
//
//	E    …
//	t    task A writes x      step i
//	w    task B reads y       does not depend on t
//	u    task A writes y      depends on t, because it belongs to the same task
//	t'   task C reads x       races with t
//
// The steps that do not depend on t are w and t'. A run E.w.t'.t… has the two steps of the race in the opposite order, and so has
// E.t'.w.t…, since w and t' do not depend on each other. So B and C can begin such a run after E, and initials returns both. If neither
// is to be tried after E, and neither sleeps there, race selects one of them that is enabled there, or all enabled tasks if there is
// none. If B had started C in step w, only B could begin.
func (r *reduction) race(i, now, id int, before *clock) {
	if !r.adjacent(i, before) {
		return
	}
	first := &r.stack[i]
	initial := r.initials(i, now, id, before)
	switch {
	case initial&(first.todo|first.sleep) != 0:
	case initial&first.enabled != 0:
		first.todo |= one((initial & first.enabled).first())
	default:
		first.todo |= first.enabled
	}
}

// adjacent reports whether step i and a later step of another task are a race: step i does not come before the later step in every
// equivalent run, and no step of r.found comes between them. The parameter before is the clock of the later step's task.
func (r *reduction) adjacent(i int, before *clock) bool {
	by := r.stack[i].task
	at := r.stack[i].clock[by]
	if at <= before[by] {
		return false // step i precedes the later step in every equivalent run
	}
	for _, k := range r.found {
		if k != i && r.stack[k].clock[by] >= at {
			return false // step k comes between them
		}
	}
	return true
}

// initials returns the tasks whose next step does not depend on step i, and could be taken in its place: those that can begin the part of
// w.t' that does not depend on step i.
func (r *reduction) initials(i, now, id int, before *clock) procs {
	by := r.stack[i].task
	at := r.stack[i].clock[by]
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
	return initial
}

// waitForLocks is called when no step is possible. It looks for races with the tasks that wait for locks, because such a task could have
// taken its lock first.
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

// fallAsleep sets r.sleep to the tasks that sleep after s. Such a task slept at s or was tried there, and its next step does not depend
// on s. For example, p writes x and q writes y. Once p has been tried first, q is tried, and p sleeps after q's step: p and then q has led to the
// same state. If q also writes x, the two steps conflict, and p wakes up.
func (r *reduction) fallAsleep(s *step) {
	r.sleep, r.quiet = 0, 0
	var buf [8]footprint
	for may := (s.sleep | s.done) &^ one(s.task); may != 0; may &= may - 1 {
		id := may.first()
		t := r.tasks[id]
		if !conflicting(r.acts, t.footprints(buf[:0], t.pending, s.quiet.has(id), t.awaits)) {
			r.sleep |= one(id)
			r.quiet |= s.quiet & one(id)
		}
	}
}

package explore

import (
	"runtime"
	"unsafe"
)

// add adds t to the tasks of the run. parent is the task that has started t, or nil for the program.
func (w *World) add(parent, t *task) {
	w.tasks = append(w.tasks, t)
	w.e.search.add(parent, t)
}

// enabled reports whether t can take a step.
func (t *task) enabled() bool {
	switch {
	case t.ended, t.parked, t.early, t.cancels != nil && !t.begun:
		return false
	case t.lock != nil:
		return t.lockIsFree()
	case t.after != nil:
		select {
		case <-t.after:
		default:
			return false
		}
	}
	return true
}

func (t *task) lockIsFree() bool {
	if !t.lock.TryLock() {
		return false
	}
	t.lock.Unlock()
	return true
}

// An accessKind determines which accesses conflict.
type accessKind uint8

const (
	nothing accessKind = iota
	read
	write
	parks
	locks
	called
	returned
)

// access is called before t, whose turn it is, accesses something that tasks share. The call may give t's turn to another task.
func access[T any](t *task, kind accessKind, at *T) { t.access(kind, unsafe.Pointer(at)) }

func (t *task) access(kind accessKind, at unsafe.Pointer) {
	w := t.w
	if w.dead {
		if w.spent++; w.spent > 1000 {
			runtime.Goexit()
		}
		return
	}
	t.pending = footprint{at, kind}
	t.goesRound()
	w.handOver(t, w.pick(t))
	t.quiet = false
}

// access performs an access by the calling task. It has no effect if the search is not reduced, or if the caller is not a task.
func (w *World) access(kind accessKind, at *[]event) {
	if t := w.running(); t != nil && w.e.Reduced {
		access(t, kind, at)
	}
}

// handOver gives the turn of t to the task next, and returns when t has another turn. If next is t, handOver returns at once.
func (w *World) handOver(t, next *task) {
	w.e.countStep()
	if next == t {
		return
	}
	w.chosen = next
	t.worker.yield(struct{}{})
	if w.dead {
		runtime.Goexit()
	}
}

// Park implements suspend.Task.
func (t *task) Park() {
	w := t.w
	if w.dead {
		runtime.Goexit()
	}
	t.waits()
	if w.e.Reduced {
		t.parkReduced()
		return
	}
	if t.permit {
		t.permit = false
		return
	}
	if t.spurious < w.e.Spurious && w.e.choose(2) == 1 {
		t.spurious++
		w.handOver(t, w.pick(t))
		return
	}
	t.parked = true
	t.eventHere("suspended")
	w.handOver(t, w.pick(nil))
}

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	w := t.w
	u := w.running()
	if u != nil && w.e.Fine {
		access(u, write, &t.permit)
	}
	if w.e.Reduced {
		t.unparkReduced(u)
		return
	}
	if !t.parked {
		t.permit = true
		return
	}
	t.parked = false
	w.wakes(t)
}

func (w *World) wakes(t *task) {
	if c := w.current; c == nil || c.cancels == nil {
		w.event(c, "wakes %s", t.name)
	}
}

// Yield lets other tasks take a step. In a reduced search it is a step that commutes with all others.
func (t *task) Yield() {
	w := t.w
	if w.dead {
		runtime.Goexit()
	}
	t.eventHere("yields")
	if w.e.Reduced {
		t.access(nothing, nil)
		return
	}
	t.gaveWay()
	w.handOver(t, w.pick(nil))
}

// gaveWay counts a Yield or a Sleep of t in t.starved.
func (t *task) gaveWay() {
	for _, u := range t.w.tasks {
		if u != t && u.enabled() {
			if t.starved == nil {
				t.starved = map[*task]int{}
			}
			t.starved[u]++
		} else {
			delete(t.starved, u)
		}
	}
}

// Preempt is called where an operation that may suspend begins; see suspend.Preemptible. It always returns false, because it switches
// tasks itself.
func (t *task) Preempt() (yield bool) {
	t.PreemptPoint()
	return false
}

// PreemptPoint is called where any other operation of a primitive begins; see suspend.Point.
func (t *task) PreemptPoint() {
	w := t.w
	if !w.e.Points || w.dead || w.current != t {
		return
	}
	next := w.pick(t)
	if next != t && w.failure == "" {
		t.eventHere("lets others run")
	}
	w.handOver(t, next)
}

// waits enables the timer of t's Sleep, if there is one. The timer can then fire after the current step.
func (t *task) waits() {
	if x := t.timer; x != nil {
		t.timer, x.early = nil, false
		if r, ok := t.w.e.search.(*reduction); ok {
			r.born |= one(x.id)
		}
	}
}

// eligible reports whether t can take a step, and has not yielded too often while another task was runnable. Otherwise a loop that yields
// would have endless runs.
func (t *task) eligible() bool {
	if !t.enabled() {
		return false
	}
	most := t.w.e.Yields
	if t.w.e.Fine {
		most = 0
	}
	for u, n := range t.starved {
		if n > most && u.enabled() {
			return false
		}
	}
	return true
}

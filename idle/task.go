package idle

import (
	"runtime"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A task decorates a Task of the scheduler: it counts its Parks and Unparks.
//
//	running -P> parked   Park counts the task out
//	parked  -U> running  the Unpark has counted the task in, and then wakes it
//	running -U> woken    the permit
//	woken   -P> running  Park returns at once
//
// Debt: an Unpark that has counted in, and finds that another has woken the task, counts out again; at 0 the group is idle.
type task struct {
	suspend.Task
	g     *Group
	state atomicx.Uint32
}

const (
	running uint32 = iota
	parked
	woken
)

// Park implements suspend.Task.
func (t *task) Park() {
	if !t.state.CompareAndSwap(running, parked) {
		t.state.Store(running) // it was woken, and an Unpark leaves a woken task alone
		return
	}
	t.g.parks()
	returned := false
	defer func() {
		if !returned && t.state.CompareAndSwap(parked, running) { // killed: its end counts it out
			t.g.running.Add(1)
		}
	}()
	for t.state.Load() == parked {
		t.Task.Park()
	}
	returned = true
}

// Unpark implements suspend.Task. It counts before it decides: a task that is woken first may end before it is counted, and
// the count would be 0 in between.
func (t *task) Unpark() {
	for {
		switch t.state.Load() {
		case parked:
			t.g.running.Add(1)
			if t.state.CompareAndSwap(parked, running) {
				t.Task.Unpark()
				return
			}
			if t.g.running.Add(-1) == 0 {
				t.g.idleElsewhere()
			}
		case running:
			if t.state.CompareAndSwap(running, woken) {
				return
			}
		default:
			return
		}
	}
}

// Yield lets other tasks of the scheduler run.
func (t *task) Yield() {
	if y, ok := t.Task.(interface{ Yield() }); ok {
		y.Yield()
	} else {
		runtime.Gosched()
	}
}

// Shield implements suspend.Shield: a Kill is of the Task that is decorated.
func (t *task) Shield(f func()) {
	if s, ok := t.Task.(interface{ Shield(f func()) }); ok {
		s.Shield(f)
	} else {
		f()
	}
}

// Unwrap returns the Task that is decorated, which schedulers for tests need.
func (t *task) Unwrap() suspend.Task { return t.Task }

// Spawner is where tasks that the task starts belong.
func (t *task) Spawner() suspend.Spawner { return t.g }

package idle

import (
	"runtime"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A task wraps a Task of the scheduler, and counts its Parks and Unparks.
//
//	running -P> parked   Park decrements g.running
//	parked  -U> running  Unpark has incremented g.running, and then wakes the task
//	running -U> woken    the next Park will return at once
//	woken   -P> running  Park returns at once
//
// Debt: an Unpark that has incremented g.running, and finds that another Unpark has woken the task, must decrement it
// again; at 0 the group is idle.
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
		t.state.Store(running) // t is woken, and an Unpark does not change a woken task
		return
	}
	returned := false
	defer func() {
		if !returned && t.state.CompareAndSwap(parked, running) { // the task exits or panics, and taskEnded will decrement g.running
			t.g.running.Add(1)
		}
	}()
	t.g.parks() // onIdle may panic
	for t.state.Load() == parked {
		t.Task.Park()
	}
	returned = true
}

// Unpark implements suspend.Task. It increments g.running before it wakes the task. Otherwise the task might end before it
// is counted, and the count would be 0 in between.
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

// Unwrap returns the wrapped Task, which schedulers for tests need.
func (t *task) Unwrap() suspend.Task { return t.Task }

// Spawner returns the Group, so that tasks started by t belong to the group.
func (t *task) Spawner() suspend.Spawner { return t.g }

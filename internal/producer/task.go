package producer

import (
	"runtime"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A task wraps the Task of a sequence, so that endWait can end a wait of the sequence.
//
//	runs   -R> told    endWait is called by the reader
//	told   -T> exited  the task exits in its wait, or in the next wait, or in its yield
//	told   -T> runs    the sequence was paused, so that it ends by itself: its waits are not ended any more
//
// The task exits by a Kill, so that nothing that was delivered to the wait in the meantime is lost.
type task struct {
	suspend.Task
	on     suspend.Spawner
	begun  atomicx.Bool // Task is set; pairs with the load in endWait
	told   atomicx.Bool
	exited bool // the fields below belong to the task
	keeps  int  // the number of calls of keepWait under way
}

func (t *task) begin() {
	t.Task = suspend.Self()
	t.begun.Store(true)
}

// endWait calls pause, which ends the wait of a paused sequence, and ends any other wait. A task that has not begun, or does not
// wait, finds t.told set in its next Park.
func (t *task) endWait(pause func()) {
	t.told.Store(true)
	pause()
	if t.begun.Load() {
		t.Unpark()
	}
}

// letWait is called by a paused sequence that endWait has ended. From here on its waits are not ended. If a Kill came too late for a wait
// of the sequence, the task exits here, so that the Kill does not end the wait of a deferred function.
func (t *task) letWait() {
	t.told.Store(false)
	suspend.Shield(func() {}) // lets a pending Kill take effect
}

// Park implements suspend.Task.
func (t *task) Park() {
	if t.keeps == 0 && t.told.Load() {
		t.told.Store(false) // a deferred function may wait
		t.exited = true
		suspend.KillSelf() // calls Unpark, so that the Park below returns
	}
	t.Task.Park()
}

// Yield lets other tasks of the scheduler run.
func (t *task) Yield() {
	if y, ok := t.Task.(interface{ Yield() }); ok {
		y.Yield()
	} else {
		runtime.Gosched()
	}
}

// keepWait calls f, whose waits endWait does not end.
func (t *task) keepWait(f func()) {
	t.keeps++
	defer func() { t.keeps-- }()
	f()
}

// Unwrap returns the wrapped Task, which schedulers for tests need.
func (t *task) Unwrap() suspend.Task { return t.Task }

// Spawner returns the scheduler.
func (t *task) Spawner() suspend.Spawner { return t.on }

package suspendtest

import (
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
)

// capabilityChecks are for the capabilities of a Spawner. A check passes where the scheduler does not offer its capability.
var capabilityChecks = []check{
	{"Holder/close-waits-for-the-release",
		"Holder: close waits until release is called, and a closed scheduler refuses a Hold.", nil, holds},
	{"Within/a-task-is-within-its-scheduler",
		"Within: a task is within the scheduler that started it, and a goroutine is not.", nil, withinItsScheduler},
}

func holds(e *env) {
	h, ok := suspend.As[suspend.Holder](e.spawner)
	if !ok {
		return
	}
	release, err := h.Hold()
	if err != nil {
		e.fatalf("Hold refused although close has not been called: %v", err)
	}
	e.settle()
	var released atomic.Bool
	closed := e.closing(func() bool { return released.Load() })
	select {
	case <-closed:
		e.fatalf("close returned although the scheduler is held")
	case <-time.After(2 * time.Millisecond): // for an event that must not be
	}
	released.Store(true)
	release()
	if !recv(e, closed, "close did not return after the release") {
		e.fatalf("close returned before the release")
	}
	if _, err := h.Hold(); err == nil {
		e.errorf("a closed scheduler was held")
	}
}

// closing closes the scheduler from a goroutine, and then sends what state returns.
func (e *env) closing(state func() bool) <-chan bool {
	closed, shut := make(chan bool, 1), e.shut
	e.shut = nil
	go func() {
		defer e.caught("close")
		shut()
		closed <- state()
	}()
	return closed
}

func withinItsScheduler(e *env) {
	if suspend.Within(e.spawner) != (e.spawner == suspend.Goroutines) {
		e.errorf("a goroutine of no scheduler is within it")
	}
	e.do("a task did not end", func() {
		if suspend.Current() != nil && !suspend.Within(e.spawner) { // the tasks may be goroutines
			e.errorf("Within says that a task is elsewhere: Spawner of its Task returns another scheduler")
		}
	})
}

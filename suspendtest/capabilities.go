package suspendtest

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// capabilityChecks test the optional capabilities of a Spawner. A check also passes if the scheduler does not have the
// capability.
var capabilityChecks = []check{
	{"Holder/close-waits-for-the-release",
		"Holder: close waits until release is called, and a closed scheduler refuses a Hold.", nil, holds},
	{"Watcher/tells-the-end-of-a-context-once",
		"Watcher: AfterDone calls its function once, as a callback after the end of the context, never inline, and not after a stop.", nil, watches},
	{"Within/a-task-is-within-its-scheduler",
		"Within: a task is within the scheduler that started it, and a goroutine is not.", nil, withinItsScheduler},
}

// watches checks that a Watcher's AfterDone calls f once, as a callback, after the end of the context, and not after a stop.
func watches(e *env) {
	w, ok := suspend.As[sched.Watcher](e.spawner)
	if !ok {
		return
	}
	var called, stopped, inline, suspends atomic.Int32
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	waiting := e.waiter(background)
	e.do("AfterDone did not return", func() {
		w.AfterDone(ctx, func() {
			if !suspend.Forbidden() {
				suspends.Add(1)
			}
			called.Add(1)
			waiting.resume(nil, nil)
		})
		if stop := w.AfterDone(ctx, func() { stopped.Add(1) }); !stop() || stop() {
			e.errorf("stop did not return true exactly once, although it prevented the call")
		}
	})
	e.letPark()
	if called.Load() > 0 {
		e.fatalf("AfterDone called its function before the context had ended")
	}
	e.do("cancel did not return", func() { cancel() })
	recv(e, waiting.ended, "AfterDone did not call its function after the end of the context")
	e.do("AfterDone did not return", func() {
		caller, within, itself := gid.Get(), true, false
		w.AfterDone(ctx, func() {
			if gid.Get() == caller && within { // another goroutine may already be calling the function
				itself = true
			}
			inline.Store(1)
		})
		if within = false; itself {
			e.errorf("AfterDone called its function inline, because ctx had ended; but its caller may hold locks")
		}
	})
	e.do("AfterDone did not call its function for a context that had ended before", func() {
		for inline.Load() == 0 && !e.over.Load() {
			e.pass(background)
		}
	})
	if called.Load() != 1 || stopped.Load() != 0 || suspends.Load() != 0 {
		e.errorf("called %d times, %d times after a stop, %d times where suspending is allowed", called.Load(), stopped.Load(), suspends.Load())
	}
}

func holds(e *env) {
	h, ok := suspend.As[sched.Holder](e.spawner)
	if !ok {
		return
	}
	release, err := h.Hold()
	if err != nil {
		e.fatalf("Hold refused although close has not been called: %v", err)
	}
	e.letPark()
	var released atomic.Bool
	closed := e.closing(released.Load)
	for begun := time.Now(); len(closed) == 0 && time.Since(begun) < 2*time.Millisecond; { // close must not return yet
		runtime.Gosched()
	}
	released.Store(true)
	release()
	if !recv(e, closed, "close did not return after the release") {
		e.errorf("close returned before the release")
	}
	if _, err := h.Hold(); err == nil {
		e.errorf("Hold succeeded although the scheduler is closed")
	}
}

// closing starts to close the scheduler on a new goroutine. After the close, that goroutine sends the result of state().
func (e *env) closing(state func() bool) <-chan bool {
	begun, closed, shut := make(chan struct{}), make(chan bool, 1), e.shut
	e.shut = nil
	go func() {
		defer e.caught("close")
		close(begun)
		shut()
		closed <- state()
	}()
	<-begun
	return closed
}

func withinItsScheduler(e *env) {
	if suspend.Within(e.spawner) != (e.spawner == suspend.Goroutines) {
		e.errorf("Within is true on a goroutine without a scheduler")
	}
	e.do("a task did not end", func() {
		if suspend.Current() != nil && !suspend.Within(e.spawner) { // Current returns nil if the tasks are goroutines
			e.errorf("Within is false in a task of the scheduler: Spawner of its Task returns another scheduler")
		}
	})
}

package suspend

import (
	"cmp"

	"github.com/braidgo/braid/suspend/sched"
)

// Here returns the scheduler of the calling task. It returns Goroutines if there is no task, or if the Task does not name its
// scheduler.
func Here() Spawner {
	if b := current(); b != nil {
		if s := spawnerOf(b.task); s != nil {
			return s
		}
	}
	return Goroutines
}

// Current returns the Task that is bound to the calling goroutine. It returns nil if there is none, and under Bind(nil, f).
func Current() Task {
	if b := current(); b != nil {
		return b.task
	}
	return nil
}

// Forbidden reports whether a Suspend by the caller would panic. It returns true under Bind(nil, f), as in callbacks and hooks,
// under a Ban, and in the block of a Suspend.
func Forbidden() bool {
	b := current()
	return b != nil && (b.task == nil || b.doing == inBlock)
}

// Self returns the Task that is bound to the calling goroutine, or a new one of sched.NewThread if there is none. It panics where a Suspend would
// panic. A scheduler that runs on its caller's goroutine parks the caller with this Task, so that it may itself run in a task of
// another scheduler. The scheduler must call Park in a loop, because any other wake-up of the same task also makes Park return.
func Self() Task {
	b := current()
	if b == nil {
		return sched.NewThread()
	}
	b.check()
	return b.task
}

// Within reports whether the calling task runs on s, which means that Here returns s, a wrapper of s, or a part of s. A part of
// a scheduler has a method Same(s Spawner) bool, which reports whether s is the whole. A goroutine without a task runs on Goroutines, which
// a nil Spawner also means.
func Within(s Spawner) bool {
	s = cmp.Or(s, Goroutines)
	for here := Here(); here != nil; {
		if here == s {
			return true
		}
		if part, ok := here.(interface{ Same(s Spawner) bool }); ok && part.Same(s) {
			return true
		}
		w, wraps := here.(interface{ Unwrap() Spawner })
		if !wraps {
			break
		}
		here = w.Unwrap()
	}
	return false
}

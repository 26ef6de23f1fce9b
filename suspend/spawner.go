package suspend

import (
	"context"
	"time"
)

// A Spawner starts tasks. Go returns nil if f will run as a new task, even if the caller's context ends before f begins. It returns
// ErrClosed if f will never run. Go obeys the contract of Unpark: any goroutine may call it, under any lock, and it neither blocks
// nor runs f before it returns.
type Spawner interface {
	Go(f func()) error
}

// An Executor runs callbacks. Execute enqueues f, which must not suspend, or returns an error if it refuses f. Execute obeys the
// contract of Unpark, as Go does.
type Executor interface {
	Execute(f func()) error
}

// Stats are the statistics of a scheduler. The numbers are read one after another, and some schedulers update them only
// occasionally. Use them for dashboards, not for decisions.
type Stats struct {
	Live      int64  // accepted tasks and callbacks that have not ended
	Running   int64  // live tasks and callbacks that are running
	Suspended int64  // live tasks that are suspended, or resumed and not yet running
	Wakes     uint64 // resumptions of suspended tasks since the scheduler began
	Steals    uint64 // times that a worker took work from another worker
	HandOvers uint64 // hand-overs of a scheduler from a task that blocked it, see adapters/eventloop
	Outside   int64  // running tasks that are outside their scheduler after a hand-over

	Blocking       int64 // functions that run in Blocking
	BlockingQueued int64 // functions that wait in Blocking until others have ended
}

// Goroutines is a Spawner that starts each f on a new goroutine, without a scheduler. Its Go never fails.
var Goroutines Spawner = goroutines{}

type goroutines struct{}

func (goroutines) Go(f func()) error { go f(); return nil }

// The following interfaces are optional capabilities of a Spawner. The functions of this package find a capability with [As], and
// use a default if the scheduler lacks it. A Spawner that wraps another has a method Unwrap() Spawner, through which As finds the
// other's capabilities. The conformance kit checks each capability that it finds.

// A Rand is a source of random numbers. Select, Choose and Then draw from the source of the calling task's scheduler. A scheduler
// that repeats a run from its seed has a seeded source, so that its tasks make the same choices again. Any goroutine may call
// Uint64. Without a Rand, the numbers come from math/rand/v2.
type Rand interface{ Uint64() uint64 }

// Timers are the timers of a scheduler. AfterFunc calls f after d, as Execute would; f must not suspend. stop reports whether it
// has prevented the call. AfterFunc obeys the contract of Unpark. A closed scheduler may drop a timer if none of its tasks waits
// for it. Without Timers, package time supplies the timers.
type Timers interface {
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// A Clock is the clock by which the Timers run. The method Now obeys the contract of Unpark. Without a Clock, package time supplies
// the time.
type Clock interface{ Now() time.Time }

// A Blocker bounds the number of goroutines that Blocking uses. Block runs f, which may block, on such a goroutine, and does not
// wait for f. Without a Blocker, Blocking starts a goroutine for each f.
type Blocker interface{ Block(f func()) error }

// A Watcher reports the end of contexts. AfterDone calls f after ctx has ended, as Execute would. stop reports whether it has
// prevented the call. A task uses the Watcher for a context that has no AfterFunc method. Without a Watcher, context.AfterFunc
// calls f on a new goroutine. A scheduler that repeats a run from its seed cannot permit that, so its Watcher checks the Done
// channels itself.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// A Holder keeps a scheduler open for a waiter without a task, such as a Then, an actor without a message, or a delayed retry.
// Until release is called, the hold counts as a suspended task, so that Run and Close wait for it. Hold returns ErrClosed if the
// scheduler is closed. Hold and release obey the contract of Unpark. release must be called once. Without a Holder, a scheduler may
// close during such a wait.
type Holder interface {
	Hold() (release func(), err error)
}

// Same is implemented by a part of a scheduler, if the part is a Spawner that Here returns. Its method reports whether s is the
// whole scheduler. A Spawner without this method is the same only as itself.
type Same interface{ Same(s Spawner) bool }

// As returns s as a C if s has this capability. Otherwise, if s wraps other Spawners, As returns the first of these that has it.
func As[C any](s Spawner) (c C, ok bool) {
	for s != nil {
		if c, ok = s.(C); ok {
			return c, true
		}
		w, wraps := s.(interface{ Unwrap() Spawner })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return c, false
}

// asOf is like As, but for an Executor, which need not be a Spawner.
func asOf[C any](on Executor) (c C, ok bool) {
	if c, ok = on.(C); ok {
		return c, true
	}
	s, _ := on.(Spawner)
	return As[C](s)
}

// spawnerOf returns the scheduler of t, or nil if t has no Spawner method.
func spawnerOf(t Task) Spawner {
	if t, ok := t.(interface{ Spawner() Spawner }); ok {
		return t.Spawner()
	}
	return nil
}

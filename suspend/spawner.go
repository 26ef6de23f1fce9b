package suspend

import (
	"context"
	"time"
)

// A Spawner starts tasks. Go returns nil if f will run, as a new task, even if the context of the caller is
// cancelled by then; it returns ErrClosed if f will never run. Go obeys the contract of Unpark: any goroutine may call
// it, under locks, and it neither blocks nor runs f before it returns.
type Spawner interface {
	Go(f func()) error
}

// An Executor runs callbacks. Execute enqueues f, which must not suspend, or returns the error with which it
// refuses; it obeys Unpark's contract: any goroutine, under locks, never blocking, never running f inline.
type Executor interface {
	Execute(f func()) error
}

// Stats are the statistics of a scheduler. The numbers are taken one after another while work goes on, and
// some schedulers publish them only now and then: they are for dashboards, not for decisions.
type Stats struct {
	Live      int64  // tasks and callbacks accepted that have not ended
	Running   int64  // how many of them run
	Suspended int64  // how many of them are suspended, or woken and not yet running
	Wakes     uint64 // times that a suspended task was resumed, since the beginning
	Steals    uint64 // times that a worker took work from another
	HandOvers uint64 // times that a scheduler was taken from a task that held it, see adapters/eventloop
	Outside   int64  // how many of Running run beside their scheduler after a hand-over

	Blocking       int64 // functions of Blocking that run
	BlockingQueued int64 // functions of Blocking that wait until others have ended
}

// Goroutines is the Spawner that starts goroutines. It refuses nothing.
var Goroutines Spawner = goroutines{}

type goroutines struct{}

func (goroutines) Go(f func()) error { go f(); return nil }

// These are the capabilities of a Spawner beside Go. The functions of this package find them by [As], and work without a
// capability that a scheduler lacks. A Spawner that wraps another has a method Unwrap() Spawner, so that it offers the other's capabilities. The
// conformance kit checks each capability that it finds.

// Rand is a source of random numbers: Select, Choose and Then draw from the source of the calling task's scheduler. A
// scheduler that repeats a run from its seed has a seeded one, and so its tasks make the same choices again. Uint64 may
// be called by any goroutine. Without it, they draw from math/rand/v2.
type Rand interface{ Uint64() uint64 }

// Timers are the timers of a scheduler. AfterFunc calls f after d, as Execute would: f must not suspend. stop reports
// whether it has prevented the call. AfterFunc obeys the contract of Unpark. A closed scheduler may drop the
// timers that none of its tasks waits for. Without it, package time has the timers.
type Timers interface {
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Clock is the clock of the Timers. Now obeys the contract of Unpark. Without it, package time has the clock.
type Clock interface{ Now() time.Time }

// Blocker runs f, which may block, on a goroutine, and bounds the number of those. It does not wait for f. Without it,
// Blocking starts a goroutine for each f.
type Blocker interface{ Block(f func()) error }

// Watcher reports the end of contexts. AfterDone calls f, as Execute would, after ctx is done. stop reports whether it has
// prevented the call. A context of package context calls back on a new goroutine. A scheduler that repeats a run
// from its seed can admit none, so it looks at the Done channels itself. Tasks use it when they wait with a context that
// has no AfterFunc method. Without it, context.AfterFunc makes the call.
type Watcher interface {
	AfterDone(ctx context.Context, f func()) (stop func() bool)
}

// Holder keeps a scheduler open for something that waits without a task: a Then, an actor without a message, a delayed
// retry. Until release is called it counts as a suspended task: Run and Close wait for it. Hold refuses with ErrClosed.
// Both obey the contract of Unpark. release is called once. Without it, a scheduler may close while something waits.
type Holder interface {
	Hold() (release func(), err error)
}

// Same is for the parts of a scheduler that are Spawners themselves, and what Here returns in their tasks. It reports
// whether s is the scheduler. Without it, a Spawner is the same as itself only.
type Same interface{ Same(s Spawner) bool }

// As returns s as a C, a capability, or else the first of what s wraps that is one.
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

// asOf is As for an executor, which may be no Spawner.
func asOf[C any](on Executor) (c C, ok bool) {
	if c, ok = on.(C); ok {
		return c, true
	}
	s, _ := on.(Spawner)
	return As[C](s)
}

// spawnerOf returns the scheduler of t, nil if t does not say.
func spawnerOf(t Task) Spawner {
	if t, ok := t.(interface{ Spawner() Spawner }); ok {
		return t.Spawner()
	}
	return nil
}

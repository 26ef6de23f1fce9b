// Package coro is a coroutine that runs one task after another, and the watch for tasks that hold their scheduler. It
// depends on no scheduler: a scheduler embeds a Coroutine in its own record of a task.
package coro

import (
	"iter"
	"runtime/debug"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/prefetch"
	"github.com/braidgo/braid/suspend"
)

// A Coroutine runs functions, one after another: one switch in, one switch out, without the runtime's scheduler.
//
// It is made on a goroutine of the scheduler, and inherits two properties from it that the runtime insists on later: a
// locked thread, a testing/synctest bubble. Any goroutine with the same properties may resume it, but two goroutines
// must not do so concurrently.
type Coroutine struct {
	why   Switch // the reason of the last switch, written before it
	Mark  uint8  // left to the scheduler
	named bool   // it is idle, and its labels say so
	next  Next
	yield Yield
	watch atomicx.Pointer[Stalls] // belongs to the worker that runs it, or ran it last
	// A scheduler that has 32 bytes before these has them all in one cache line. The rest is not needed for each switch.
	gid     atomicx.Int64 // the coroutine's goroutine, once it has begun
	place   prefetch.Task
	f       func()
	owner   Owner
	binding suspend.Bound
	stop    func()
	begun   dlist.Node[*Coroutine]
}

// begun lists the coroutines that have begun and not ended, so that Stalls can find the coroutine that a worker runs.
var begun struct {
	mu  atomicx.Mutex // a leaf
	all dlist.List[*Coroutine]
}

// An Owner is the task that a Coroutine is bound to while it runs: the record that embeds it.
type Owner interface {
	suspend.Task

	// Another returns the next function of the coroutine, nil if it is to become idle. It is called when a function has
	// ended, on the coroutine.
	Another() func()

	// Panicked is called on the coroutine after a panic that a function has not recovered.
	Panicked(value any, stack []byte)
}

// A Switch is the reason for which a coroutine has given control back.
type Switch uint8

const (
	Parked  Switch = iota // its task is suspended
	Yielded               // its task is runnable
	Ended                 // the task has ended, and the coroutine is idle
	Exited                // the task has ended by runtime.Goexit, and the coroutine with it
)

// Next and Yield are the two ends of a coroutine.
type (
	Next  = func() (struct{}, bool)
	Yield = func(struct{}) bool
)

// Init makes c an idle coroutine of owner. It is called once.
func (c *Coroutine) Init(owner Owner) {
	c.owner = owner
	c.next, c.stop = iter.Pull(c.body())
}

// WatchedBy says that c runs its steps on the worker that s watches, from now on. It is called by that worker.
func (c *Coroutine) WatchedBy(s *Stalls) {
	if c.watch.Load() != s {
		c.watch.Store(s)
	}
}

// Start gives an idle coroutine its next function. The next Step begins it.
func (c *Coroutine) Start(f func()) { c.f = f }

// Prime begins c, which becomes idle again at once: ID is known then.
func (c *Coroutine) Prime() {
	c.Start(func() {})
	c.next()
}

// Step resumes c and returns when it gives control back. After Exited there must be no other Step.
func (c *Coroutine) Step() Switch {
	c.next()
	why := c.why // read before the task is parked: then another goroutine may be running it
	if why == Exited {
		c.Reap()
	}
	return why
}

// Next returns the function that resumes c, for callers that do not return to it from Step.
func (c *Coroutine) Next() Next { return c.next }

// Leave notes why c is about to switch, and returns the switch. It is called on c.
func (c *Coroutine) Leave(why Switch) Yield {
	c.place.Leave()
	c.why = why
	return c.yield
}

// Switch returns the switch that gives control back.
func (c *Coroutine) Switch() Yield { return c.yield }

// Why returns the reason of the last switch.
func (c *Coroutine) Why() Switch { return c.why }

// ID returns the identity of the coroutine's goroutine, 0 before the first Step.
func (c *Coroutine) ID() int64 { return c.gid.Load() }

// Fetch prefetches what c touches when it is resumed. A scheduler with many tasks calls it one task ahead.
func (c *Coroutine) Fetch() {
	c.place.Fetch()
	prefetch.Pointer(&c.binding)
	prefetch.Func(&c.next)
}

// Kill ends the task of c, see suspend.Bound. It is called while c is not running.
func (c *Coroutine) Kill() bool { return c.binding.Kill() }

// Shielded reports whether the task of c puts off a Kill, see suspend.Bound. It is called while c is not running.
func (c *Coroutine) Shielded() bool { return c.binding.Shielded() }

// Shield is suspend.Shield, for a Task that decorates this one.
func (c *Coroutine) Shield(f func()) { c.binding.Shield(f) }

// Unshield lifts that, see suspend.Bound. It is called while c is not running.
func (c *Coroutine) Unshield() bool { return c.binding.Unshield() }

// TaskEnded is called between two tasks of one function, see suspend.Bound. It also takes the profiler labels away that the
// task has set, or the next one would have them.
func (c *Coroutine) TaskEnded() {
	if labels.Some() {
		labels.Clear()
	}
	c.binding.TaskEnded()
}

// Park implements suspend.Task, see suspend.Bound.
func (c *Coroutine) Park() { c.binding.Park() }

// ExitIfKilled ends the calling task, which is on c, if a Kill has not taken effect.
func (c *Coroutine) ExitIfKilled() { c.binding.ExitIfKilled() }

// Yield gives others a turn.
func (c *Coroutine) Yield() { c.binding.Yield() }

// Stop ends an idle coroutine. It may be called where no worker is.
func (c *Coroutine) Stop() {
	c.watch.Store(nil)
	c.stop()
}

// Reap ends a coroutine whose task has exited. Step does so itself.
func (c *Coroutine) Reap() {
	defer func() { _ = recover() }() // goexit
	c.next()
}

// goexit is the panic that replaces a runtime.Goexit: iter.Pull would hand the exit on to the caller of next.
type goexit struct{}

// body returns the function that the coroutine runs. Add no frame between iter.Pull and a task: a small task fits into
// the first stack of two kilobytes, and growing that would cost more than the task.
func (c *Coroutine) body() func(Yield) {
	return func(yield Yield) {
		entered := c.begin(yield)
		done := false
		defer func() { c.end(done, recover()) }()
		defer entered.Exit()
		for {
			if c.run(); !c.again() && !yield(struct{}{}) {
				done = true
				return
			}
		}
	}
}

func (c *Coroutine) begin(yield Yield) (entered suspend.Entered) {
	c.yield = yield
	c.gid.Store(gid.Get())
	labels.Clear() // a goroutine begins with the labels of its maker
	c.place.Begin()
	begun.mu.Lock()
	c.begun.Value = c
	begun.all.Push(&c.begun)
	begun.mu.Unlock()
	c.binding, entered = suspend.Enter(c.owner)
	return entered
}

func (c *Coroutine) run() {
	returned := false
	defer func() {
		if !returned {
			c.broken(recover())
		}
	}()
	if c.named {
		c.named = false
		labels.Clear()
	}
	f := c.f
	c.f = nil
	f()
	c.TaskEnded() // may call a context
	returned = true
}

// broken ends a task that has panicked, or whose context has. A nil v is a Goexit, which goes on to body.
func (c *Coroutine) broken(v any) {
	func() {
		defer func() {
			if x := recover(); x != nil {
				v = x
			}
		}()
		c.TaskEnded()
	}()
	if v != nil {
		defer c.TaskEnded() // should a hook wait
		c.owner.Panicked(v, debug.Stack())
	}
}

// again reports whether the owner has another function.
func (c *Coroutine) again() bool {
	if c.f = c.owner.Another(); c.f != nil {
		return true
	}
	c.why = Ended
	c.named = labels.Idle()
	return false
}

// end is called last on the coroutine. A task that is not done has exited.
func (c *Coroutine) end(done bool, panicked any) {
	begun.mu.Lock()
	begun.all.Remove(&c.begun)
	begun.mu.Unlock()
	if panicked != nil { // a hook or a context has panicked
		Crash(panicked, debug.Stack())
	}
	if done {
		return
	}
	c.why = Exited
	c.yield(struct{}{}) // returns at Reap: any later next would return nothing
	panic(goexit{})
}

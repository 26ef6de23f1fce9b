// Package coro provides a coroutine that runs one task after another, and a watch for tasks that hold their scheduler
// for too long. The package depends on no scheduler: each scheduler embeds a Coroutine in its own record of a task.
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

// A Coroutine runs functions, one after another. Each function costs one switch in and one switch out. These switches
// bypass the runtime's scheduler.
//
// A coroutine is made on a goroutine of the scheduler, and inherits two properties of that goroutine that the runtime
// checks later: a locked thread, and a testing/synctest bubble. Any goroutine with the same properties may resume the
// coroutine, but two goroutines must not do so concurrently.
type Coroutine struct {
	why   Switch // the reason for the last switch, written before that switch
	Mark  uint8  // reserved for the scheduler
	named bool   // the coroutine is idle, and has the labels of an idle coroutine
	locks lock
	next  Next
	yield Yield
	watch atomicx.Pointer[Stalls] // the watch of the worker that runs the coroutine or ran it last
	// If the scheduler's record has 32 bytes before the Coroutine, the fields above are in the same cache line as those
	// bytes. Not every switch uses the fields below.
	gid     atomicx.Int64 // the id of the coroutine's goroutine, or 0 before it has begun
	place   prefetch.Task
	f       func()
	owner   Owner
	binding suspend.Bound
	begun   dlist.Node[*Coroutine]
}

// begun lists the coroutines that have begun and not ended, so that Stalls can find the coroutine that a worker runs.
var begun struct {
	mu  atomicx.Mutex // a leaf in the lock order
	all dlist.List[*Coroutine]
}

// An Owner is the record that embeds a Coroutine. It is also the task that the Coroutine is bound to while it runs.
type Owner interface {
	suspend.Task

	// Another returns the next function of the coroutine, or nil if the coroutine is to become idle. It is called on
	// the coroutine when a function has ended.
	Another() func()

	// Panicked is called on the coroutine when a function has panicked without recovering.
	Panicked(value any, stack []byte)
}

// A Switch is the reason why a coroutine has given control back.
type Switch uint8

const (
	Parked  Switch = iota // its task is suspended
	Yielded               // its task is runnable
	Ended                 // the task has ended, and the coroutine is idle
	Exited                // the task has ended with runtime.Goexit, which also ends the coroutine
)

// Next is the type of the function that switches to a coroutine, and Yield the type of the function that switches back.
type (
	Next  = func() (struct{}, bool)
	Yield = func(struct{}) bool
)

// Init makes c an idle coroutine of owner. It must be called once.
func (c *Coroutine) Init(owner Owner) {
	c.owner = owner
	c.next, _ = iter.Pull(c.body())
}

// WatchedBy sets the watch of c to s, because c now runs its steps on the worker that s watches. That worker calls
// WatchedBy.
func (c *Coroutine) WatchedBy(s *Stalls) {
	if c.watch.Load() != s {
		c.watch.Store(s)
	}
}

// Start gives an idle coroutine its next function. The next Step begins it.
func (c *Coroutine) Start(f func()) { c.f = f }

// Prime runs an empty function on c, so that ID returns an id. After that c is idle again.
func (c *Coroutine) Prime() {
	c.Start(func() {})
	c.next()
}

// Step resumes c and returns when c gives control back. It must not be called again after it has returned Exited.
func (c *Coroutine) Step() Switch {
	c.next()
	why := c.why // read before the task is parked, because another goroutine may run the task after that
	if why == Exited {
		c.Reap()
	}
	return why
}

// Next returns the function that resumes c, for callers that do not use Step.
func (c *Coroutine) Next() Next { return c.next }

// Leave records why c is about to switch, and returns the function that makes the switch. It must be called on c.
func (c *Coroutine) Leave(why Switch) Yield {
	c.place.Leave()
	c.why = why
	if c.Locked() {
		return c.yieldLocked
	}
	return c.yield
}

// Switch returns the function that gives control back.
func (c *Coroutine) Switch() Yield { return c.yield }

// Why returns the reason for the last switch.
func (c *Coroutine) Why() Switch { return c.why }

// ID returns the id of the coroutine's goroutine, or 0 before the first Step.
func (c *Coroutine) ID() int64 { return c.gid.Load() }

// Fetch prefetches the memory that c accesses when it resumes. A scheduler with many tasks calls Fetch for the next
// task before it resumes the current one.
func (c *Coroutine) Fetch() {
	c.place.Fetch()
	prefetch.Pointer(&c.binding)
	prefetch.Func(&c.next)
}

// Kill ends the task of c; see suspend.Bound. It must be called while c is not running.
func (c *Coroutine) Kill() bool { return c.binding.Kill() }

// Shielded reports whether the task of c is in a Shield, which delays a Kill; see suspend.Bound. It must be called
// while c is not running.
func (c *Coroutine) Shielded() bool { return c.binding.Shielded() }

// Unshield lifts the Shield of the task of c; see suspend.Bound. It must be called while c is not running.
func (c *Coroutine) Unshield() bool { return c.binding.Unshield() }

// TaskEnded must be called between two tasks of one function; see suspend.Bound. It also clears the profiler labels
// that the task has set. Otherwise the next task would inherit them.
func (c *Coroutine) TaskEnded() {
	if labels.Some() {
		labels.Clear()
	}
	c.binding.TaskEnded()
}

// Park implements suspend.Task; see suspend.Bound.
func (c *Coroutine) Park() { c.binding.Park() }

// ExitIfKilled ends the calling task, which must be on c, if it was killed and the Kill has not taken effect.
func (c *Coroutine) ExitIfKilled() { c.binding.ExitIfKilled() }

// Yield gives other tasks a turn.
func (c *Coroutine) Yield() { c.binding.Yield() }

// Stop ends an idle coroutine. It may be called on a goroutine that is not a worker.
func (c *Coroutine) Stop() {
	c.watch.Store(nil)
	c.next()
}

// Reap ends a coroutine whose task has exited. Step calls Reap itself.
func (c *Coroutine) Reap() {
	if c.locks == stranded {
		return
	}
	defer func() { _ = recover() }() // goexit
	c.next()
}

// goexit is the value of the panic that replaces a runtime.Goexit. iter.Pull would make a Goexit end the caller of
// c.next, too.
type goexit struct{}

// body returns the function that the coroutine runs. Add no frame between iter.Pull and a task: a small task fits into
// the initial stack of two kilobytes, and growing that stack would cost more than the task.
func (c *Coroutine) body() func(Yield) {
	return func(yield Yield) {
		entered := c.register(yield)
		done := false
		defer func() { c.unregister(done, recover()) }()
		defer entered.Exit()
		for c.f != nil { // after Stop there is no function
			c.run()
			if c.Locked() {
				c.strand()
			}
			if !c.again() {
				yield(struct{}{})
			}
		}
		done = true
	}
}

func (c *Coroutine) register(yield Yield) (entered suspend.Entered) {
	c.yield = yield
	c.gid.Store(gid.Get())
	labels.Clear() // a new goroutine inherits the labels of its creator
	c.place.Begin()
	c.findLock()
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
	c.TaskEnded() // TaskEnded may call a method of a context
	returned = true
}

// broken ends a task that has panicked or exited, or whose context has panicked. If v is nil, the task has called
// runtime.Goexit, whose unwinding continues in the function that body returns.
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
		defer c.TaskEnded() // Panicked may have waited
		c.owner.Panicked(v, debug.Stack())
	}
}

// again reports whether the owner has another function. If not, c becomes idle.
func (c *Coroutine) again() bool {
	if c.f = c.owner.Another(); c.f != nil {
		return true
	}
	c.why = Ended
	c.named = labels.Idle()
	return false
}

// unregister is the last call on the coroutine. If done is false, the task has exited.
func (c *Coroutine) unregister(done bool, panicked any) {
	begun.mu.Lock()
	begun.all.Remove(&c.begun)
	begun.mu.Unlock()
	if panicked != nil { // the owner's Panicked or a context has panicked
		Crash(panicked, debug.Stack())
	}
	if done {
		return
	}
	if c.Locked() {
		c.strand()
	}
	c.why = Exited
	c.yield(struct{}{}) // c.yield returns when Reap calls c.next; later calls of c.next would do nothing
	panic(goexit{})
}

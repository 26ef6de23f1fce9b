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
	busy  bool   // a function of the coroutine has begun and has not returned
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
	Exited                // the task has panicked or called runtime.Goexit, which also ends the coroutine
)

// Next is the type of the function that switches to a coroutine, and Yield the type of the function that switches back.
type (
	Next  = func() (struct{}, bool)
	Yield = func(struct{}) bool
)

// Init makes c an idle coroutine of owner. It must be called once.
//
// The function that it passes to iter.Pull calls the functions of c itself. Add no frame there: a small task that waits
// fits into the initial stack of two kilobytes, growing that stack costs more than the task, and a garbage collection
// takes time for each frame of each waiting task.
func (c *Coroutine) Init(owner Owner) {
	c.owner = owner
	c.next, _ = iter.Pull(func(yield Yield) {
		c.register(yield)
		defer c.finish()
		for c.f != nil { // after Stop there is no function
			for f := c.begin(); f != nil; f = c.again() {
				f()
			}
			c.yield(struct{}{})
		}
	})
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

// goexit is the value of the panic that ends a coroutine whose task has exited or panicked. It replaces a
// runtime.Goexit, which iter.Pull would pass on to the caller of c.next.
type goexit struct{}

// register is the first call on the coroutine.
func (c *Coroutine) register(yield Yield) {
	c.yield = yield
	c.gid.Store(gid.Get())
	labels.Clear() // a new goroutine inherits the labels of its creator
	c.place.Begin()
	c.findLock()
	begun.mu.Lock()
	c.begun.Value = c
	begun.all.Push(&c.begun)
	begun.mu.Unlock()
	c.binding, _ = suspend.Enter(c.owner)
}

// begin returns the function that Start has set.
func (c *Coroutine) begin() (f func()) {
	if c.named {
		c.named = false
		labels.Clear()
	}
	c.busy = true
	f, c.f = c.f, nil
	return f
}

// again is called when a function of c has returned. It returns the owner's next function. If there is none, c becomes
// idle, and again returns nil.
func (c *Coroutine) again() func() {
	c.TaskEnded() // TaskEnded may call a method of a context
	c.busy = false
	if c.Locked() {
		c.strand()
	}
	if f := c.owner.Another(); f != nil {
		c.busy = true
		return f
	}
	c.why = Ended
	c.named = labels.Idle()
	return nil
}

// finish is the last call on the coroutine. If c is busy, its task has panicked or exited, or its context has panicked.
func (c *Coroutine) finish() {
	v := recover()
	defer func() { c.unregister(recover()) }()
	defer c.binding.Exit()
	if c.busy {
		c.broken(v)
	} else if v != nil {
		panic(v)
	}
}

// broken ends the task. If v is nil, the task has called runtime.Goexit. It may have done so even if v is not nil, because its deferred
// functions may panic.
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

// unregister is called at the end of finish.
func (c *Coroutine) unregister(panicked any) {
	begun.mu.Lock()
	begun.all.Remove(&c.begun)
	begun.mu.Unlock()
	if panicked != nil { // the owner's Panicked or a context has panicked
		Crash(panicked, debug.Stack())
	}
	if !c.busy {
		return
	}
	if c.Locked() {
		c.strand()
	}
	c.why = Exited
	c.yield(struct{}{}) // c.yield returns when Reap calls c.next; later calls of c.next would do nothing
	panic(goexit{})
}

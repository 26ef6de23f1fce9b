//go:build explore

package runner

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A Leased is a Runner with a lease, for the model checker. Its coroutines are emulated by tasks of the checker.
type Leased struct {
	*Runner
	careful    bool
	coroutines []*Emulated
	driver     atomicx.Pointer[suspend.Task] // the task that runs the Runner
	ready      atomicx.Int32                 // counts the coroutines that have begun
	core       atomicx.Int32                 // counts the callers in the core

	step    atomicx.Pointer[func()] // a step that Carrier must run
	carrier atomicx.Pointer[suspend.Task]
	over    atomicx.Bool
}

// An Emulated is an emulated coroutine, and a suspend.Task. Its turn begins when it is resumed, and ends when it gives
// control back.
type Emulated struct {
	l          *Leased
	t          Task
	self       suspend.Task
	resumer    atomicx.Pointer[suspend.Task]
	turn, back atomicx.Bool
}

// NewLeased returns a Leased with n idle coroutines. If careful is true, the first steps of all coroutines run outside
// (see lease).
func NewLeased(n int, careful bool) *Leased {
	l := &Leased{careful: careful}
	l.Runner = New(nil, func() { (*l.driver.Load()).Unpark() }, nil)
	l.emulate(n)
	return l
}

// Emulate gives r a lease and n idle coroutines.
func Emulate(r *Runner, n int) *Leased {
	l := &Leased{Runner: r}
	l.emulate(n)
	return l
}

func (l *Leased) emulate(n int) {
	l.InOrder = true
	l.Lease(time.Hour, nil)
	if l.careful {
		c := &l.lease.caution
		c.left, c.period, c.until = enough, 1, time.Now().Add(time.Hour)
	}
	l.lease.start = func(step func()) {
		for !l.step.CompareAndSwap(nil, &step) {
			suspend.Yield() // Carrier has not taken the last step yet
		}
		if c := l.carrier.Load(); c != nil {
			(*c).Unpark()
		}
	}
	for range n {
		c := &Emulated{l: l}
		c.t.runner.Store(l.Runner)
		c.t.Item.task, c.t.post.task = &c.t, &c.t
		l.coroutines = append(l.coroutines, c)
	}
}

// Coroutine runs the i'th coroutine on the calling task.
func (l *Leased) Coroutine(i int) {
	c := l.coroutines[i]
	c.self = suspend.Self()
	c.t.Emulate(gid.Get(), c.resume, c.yield)
	l.ready.Add(1)
	if driver := l.driver.Load(); driver != nil {
		(*driver).Unpark()
	}
	for c.wait() {
		for f := c.t.Started(); f != nil; f = c.t.Another() {
			suspend.Bind(c, f)
		}
		c.t.Coroutine.Leave(coro.Ended)
		c.giveBack()
	}
}

// Self returns the coroutine of the calling task, or nil.
func (l *Leased) Self() *Emulated {
	for _, c := range l.coroutines {
		if c.t.ID() == gid.Get() {
			return c
		}
	}
	return nil
}

// resume resumes the coroutine and returns when it has given control back.
func (c *Emulated) resume() (none struct{}, ok bool) {
	self := suspend.Self()
	c.resumer.Store(&self)
	c.turn.Store(true)
	c.self.Unpark()
	for !c.back.Swap(false) {
		self.Park()
	}
	return none, true
}

// wait waits for the next turn of the coroutine. It returns false when the Runner has ended.
func (c *Emulated) wait() bool {
	for !c.turn.Swap(false) {
		if c.l.over.Load() {
			return false
		}
		c.self.Park()
	}
	return true
}

func (c *Emulated) yield(struct{}) bool {
	c.giveBack()
	return c.wait()
}

func (c *Emulated) giveBack() {
	resumer := *c.resumer.Load()
	c.back.Store(true)
	resumer.Unpark()
}

// Park parks the task that runs on c.
func (c *Emulated) Park() { c.switches(c.t.Leave()) }

// Yield makes the task that runs on c yield.
func (c *Emulated) Yield() { c.switches(c.t.LeaveReady()) }

// switches carries out the switches that a Switcher has returned.
func (c *Emulated) switches(next coro.Next, yield coro.Yield) {
	for next != nil {
		next()
		next, yield = c.t.Back()
	}
	if yield != nil {
		yield(struct{}{})
	}
}

// Native returns the checker's task that c runs on.
func (c *Emulated) Native() suspend.Task { return c.self }

// Unpark unparks the task that runs on c.
func (c *Emulated) Unpark() { c.t.Unpark() }

// Pace enters and leaves the core if the caller is on the Runner.
func (c *Emulated) Pace() {
	if c.l.Enter() {
		c.l.inside()
		c.l.Exit()
	}
}

// inside panics if another caller is in the core.
func (l *Leased) inside() {
	if l.core.Add(1) > 1 {
		panic("two in the core")
	}
	l.core.Add(-1)
}

// Drive runs the Runner on its first goroutine.
func (l *Leased) Drive() {
	self := l.Begin()
	l.Own()
	l.drive(self)
}

// Begin makes the caller the Runner's goroutine when all coroutines have begun.
func (l *Leased) Begin() (self suspend.Task) {
	self = suspend.Self()
	l.driver.Store(&self)
	for int(l.ready.Load()) < len(l.coroutines) {
		self.Park()
	}
	for _, c := range l.coroutines {
		l.add(&c.t)
		l.idle = append(l.idle, &c.t)
	}
	return self
}

// Monitor takes the Runner if it can, and then runs it.
func (l *Leased) Monitor() {
	if l.Taken() {
		self := suspend.Self()
		l.driver.Store(&self)
		l.Own()
		l.inside()
		l.drive(self)
	}
}

// Taken takes the Runner from the current step if it can, and reports whether it did.
func (l *Leased) Taken() bool {
	if l.lease.holder.Load() == 0 || !l.Take() {
		return false
	}
	if !l.careful {
		l.lease.caution.left, l.lease.task.outside = 0, 0
	}
	return true
}

func (l *Leased) drive(self suspend.Task) {
	for l.RunTurn() {
		l.inside()
		if l.Done() {
			l.Over()
			return
		}
		if l.Empty() && l.Runner.Sleep() {
			for l.Asleep() && !l.Done() {
				self.Park()
			}
			l.Rouse()
		}
	}
}

// Over ends the Runner, which must be Done.
func (l *Leased) Over() {
	if len(l.idle) != len(l.coroutines) {
		panic("tasks are left")
	}
	l.Release()
	l.over.Store(true)
	if c := l.carrier.Load(); c != nil {
		(*c).Unpark()
	}
	for _, c := range l.coroutines {
		c.self.Unpark()
	}
}

// Carrier runs the steps that must run outside.
func (l *Leased) Carrier() {
	self := suspend.Self()
	l.carrier.Store(&self)
	for !l.over.Load() {
		if step := l.step.Swap(nil); step != nil {
			(*step)()
		} else {
			self.Park()
		}
	}
}

// Close closes the Runner, and wakes it if it sleeps.
func (l *Leased) Close() {
	l.Runner.Close()
	if l.Asleep() && l.Rouse() {
		(*l.driver.Load()).Unpark()
	}
}

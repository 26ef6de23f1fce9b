package runner

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/adapters/internal/yieldtimer"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/patience"
	"github.com/braidgo/braid/suspend"
)

// A Driven is a Runner on the goroutine that calls Run. Its scheduler brings an order, and a hook to call before it
// sleeps.
type Driven struct {
	Runner
	next   func() *Item // takes the next Item, nil if there is none; a nil next means first come, first served
	hooks  idleHooks
	parent suspend.Task      // parks the caller of Run; a Thread is made by the first sleep
	nested bool              // the caller is a task
	hooked func()            // taken from idle, and not called yet
	sleeps coro.Next         // sleepInTask, once it is needed
	before patience.Patience // sleeping
	others yieldtimer.Timer
	ran    atomicx.Bool

	main     mainTask
	ending   bool  // End was called, or the task that called Run was killed
	alone    bool  // ending, and nothing from outside ends the waits that are left
	err      error // End's argument
	inParent bool  // the goroutine is in a method of parent
}

// NewDriven makes the core of self.
func NewDriven(self suspend.Spawner, next func() *Item, onIdle func(), onPanic func(any, []byte)) *Driven {
	d := new(Driven)
	d.Init(self, next, onIdle, onPanic)
	return d
}

// Init makes d, which is part of self, its core. next and onIdle are called on the goroutine of Run; a nil next is the
// Runner's own, first come, first served; a nil onIdle is not called.
func (d *Driven) Init(self suspend.Spawner, next func() *Item, onIdle func(), onPanic func(any, []byte)) {
	d.Runner.init(self, d, onPanic)
	d.next, d.InOrder = next, next == nil
	d.hooks.always = onIdle
	d.shares = unknown
}

// A Drive is how one Run is done.
type Drive struct {
	Name         string // the scheduler's name in messages
	StallAfter   time.Duration
	OnStall      func(stack []byte)
	LockOSThread bool
}

// Drive runs main as a task, and everything else, until all has ended: the Run of a driven scheduler.
func (d *Driven) Drive(ctx context.Context, o Drive, main func(ctx context.Context) error) (err error) {
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	parent := suspend.Current()
	if o.LockOSThread && parent != nil {
		panic(o.Name + ": Run with LockOSThread inside a task")
	}
	if suspend.Forbidden() {
		suspend.Self() // panics
	}
	if !d.ran.CompareAndSwap(false, true) {
		return suspend.ErrClosed
	}
	d.parent, d.nested = parent, parent != nil
	d.Own()
	if o.LockOSThread {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	} else if !d.nested && d.InOrder {
		d.help.sleeper = d // a parent that is a task, or whose thread is locked, has to park itself
	}
	stalls := coro.WatchStalls(o.StallAfter, o.OnStall)
	d.Watch(stalls)
	defer stalls.Stop()

	d.main = mainTask{f: main, ctx: ctx, name: o.Name, exited: true}
	_ = d.Go(d.runMain)
	d.loop()
	if d.main.exited {
		runtime.Goexit()
	}
	return d.main.err
}

// A mainTask is the first task of a Run.
type mainTask struct {
	f      func(ctx context.Context) error // becomes nil when main begins, as ctx does
	ctx    context.Context
	name   string // the scheduler's name
	err    error  // its result
	exited bool   // main called runtime.Goexit, or has not ended yet
}

func (d *Driven) runMain() {
	m := &d.main
	defer func() {
		if v := recover(); v != nil {
			m.exited, m.err = false, &mainPanic{m.name, v}
			panic(v)
		}
		if m.exited && d.ending { // killed
			m.exited, m.err = false, d.err
		}
	}()
	f, ctx := m.f, m.ctx
	m.f, m.ctx = nil, nil
	m.err = f(ctx)
	m.exited = false
}

// loop runs Items until everything has ended.
func (d *Driven) loop() {
	ended := false
	defer func() {
		if !ended { // a hook has panicked or exited; the tasks are not abandoned for that
			if d.inParent { // the task that called Run was killed, and the Run's tasks are killed too
				d.inParent, d.alone, d.ending = false, d.ending, true
			}
			d.loop()
		}
	}()
	for yielded := d.steps; ; {
		if d.runSome() {
			if !d.nested {
				d.others.Tick()
			}
			if d.nested && d.steps-yielded >= yieldEvery {
				d.inParent = true
				suspend.Yield()
				d.inParent = false
				yielded = d.steps
			}
		} else if d.CloseIfDone() {
			break
		} else if d.ending {
			if !d.end() {
				break
			}
		} else if f := d.hook(); f != nil {
			d.hooked = nil
			f()
		} else {
			d.sleep()
			yielded = d.steps
		}
	}
	ended = true
	d.Release()
}

// end ends the tasks that are left, none of which is runnable. It reports whether there will be another step. What a task in
// a Shield waits for may come while the outer scheduler goes on; until that kills the Run for the second time.
func (d *Driven) end() (more bool) {
	switch {
	case d.killAll():
	case !d.alone && d.shielded():
		suspend.Shield(d.sleep)
	case !d.unshieldAll():
		d.abandon()
		return false
	}
	return true
}

func (d *Driven) runSome() bool {
	if d.next == nil {
		return d.RunSome()
	}
	it := d.next()
	if it == nil {
		return false
	}
	d.Runner.Run(it)
	return true
}

// hook returns the function to call before sleeping, nil if there is none.
func (d *Driven) hook() func() {
	if d.hooked == nil {
		d.hooked = d.hooks.take(d.steps)
	}
	return d.hooked
}

// sleep parks the caller of Run until something is runnable.
func (d *Driven) sleep() {
	if d.parent == nil {
		d.parent = suspend.Thread()
	}
	if d.Sleep() {
		d.inParent = true
		for d.Asleep() {
			d.parent.Park()
		}
		d.inParent = false
	}
}

// helpSleep returns the switch with which a helper sleeps for the scheduler: a task that waits for another thread then
// costs no switch. The goroutine of Run stays where it is. Run itself calls the hooks and ends the tasks, so then
// helpSleep returns nil.
func (d *Driven) helpSleep() coro.Next {
	if d.ending || d.hook() != nil {
		return nil
	}
	if d.sleeps == nil {
		d.sleeps = d.sleepInTask
	}
	return d.sleeps
}

// sleepInTask is the switch of helpSleep.
func (d *Driven) sleepInTask() (none struct{}, ok bool) {
	d.others.Tick()
	if d.before.Begin() {
		runtime.Gosched()
		if d.before.End(!d.Empty()); !d.Empty() {
			return none, true
		}
	}
	d.sleep()
	return none, true
}

// yieldEvery is how many steps a nested Run that is never idle takes before the outer scheduler has a turn.
const yieldEvery = 64

func (d *Driven) wake() { d.parent.Unpark() }

// mainPanic is what Run returns if main has panicked and OnPanic has dealt with it.
type mainPanic struct {
	name  string
	value any
}

func (e *mainPanic) Error() string { return fmt.Sprintf("%s: main panicked: %v", e.name, e.value) }

func (e *mainPanic) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

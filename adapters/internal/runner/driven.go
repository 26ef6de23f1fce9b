package runner

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/internal/yieldtimer"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/patience"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Driven is a Runner on the goroutine that calls Run. Its scheduler supplies the order of Items, and a hook that is
// called before a sleep.
type Driven struct {
	Runner
	next   func() *Item // takes the next Item, or returns nil if there is none; if the field is nil, Items run first come, first served
	hooks  idleHooks
	parent suspend.Task      // parks the caller of Run; the first sleep makes a Thread if there is no parent
	nested bool              // the caller of Run is a task
	hooked func()            // a hook that was taken from hooks and has not been called
	sleeps coro.Next         // the method value d.sleepInTask, made when it is first needed
	before patience.Patience // decides whether sleepInTask first calls runtime.Gosched
	others yieldtimer.Timer
	ran    atomicx.Bool

	main     mainTask
	ending   bool // the task that called Run was killed
	alone    bool // it was killed for the second time, and nothing outside the Run can end the waits that are left
	inParent bool // the goroutine of Run is in a method of parent
}

// NewDriven returns a Driven that is the core of self; see Init.
func NewDriven(self suspend.Spawner, next func() *Item, onIdle func(), onPanic func(any, []byte), closed error) *Driven {
	d := new(Driven)
	d.Init(self, next, onIdle, onPanic, closed)
	return d
}

// Init makes d, which is part of self, the core of self. The functions next and onIdle are called on the goroutine of
// Run. If next is nil, Items run first come, first served; onIdle may be nil. A second Run fails with the error closed, as work
// that is refused does.
func (d *Driven) Init(self suspend.Spawner, next func() *Item, onIdle func(), onPanic func(any, []byte), closed error) {
	d.Runner.init(self, d, onPanic, closed)
	d.next, d.InOrder = next, next == nil
	d.hooks.always = onIdle
	d.shares = unknown
}

// A Drive holds the options of one Run.
type Drive struct {
	Name         string // the scheduler's name in messages
	StallAfter   time.Duration
	OnStall      func(stack []byte)
	LockOSThread bool
}

// Drive implements the Run of a driven scheduler. It runs main as a task, and all other work, until everything has
// ended.
func (d *Driven) Drive(ctx context.Context, o Drive, main func(ctx context.Context) error) (err error) {
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	parent := suspend.Current()
	if o.LockOSThread && parent != nil {
		panic(o.Name + ": Run with LockOSThread inside a task")
	}
	if suspend.Forbidden() {
		suspend.Self() // Self panics here
	}
	if !d.ran.CompareAndSwap(false, true) {
		return d.closed
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
	f      func(ctx context.Context) error // f and ctx become nil when main begins
	ctx    context.Context
	name   string // the scheduler's name
	err    error  // the result of main
	exited bool   // main called runtime.Goexit, or has not ended yet
}

func (d *Driven) runMain() {
	m := &d.main
	defer func() {
		if v := recover(); v != nil {
			m.exited, m.err = false, &mainPanic{m.name, v}
			panic(v)
		}
		if m.exited && d.ending { // main was killed
			m.exited = false
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
		if !ended { // a hook has panicked or exited, but the remaining tasks still have to run
			if d.inParent { // the task that called Run was killed, so the Run's tasks are killed, too
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
			if !d.endTasks() {
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

// endTasks ends the tasks that are left, none of which is runnable. It reports whether there will be another step. A
// task in a Shield may wait for an event that the outer scheduler delivers, so endTasks waits for that event until the Run
// is killed for the second time.
func (d *Driven) endTasks() (more bool) {
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

// hook returns the function to call before a sleep, or nil if there is none.
func (d *Driven) hook() func() {
	if d.hooked == nil {
		d.hooked = d.hooks.nextHook(d.steps)
	}
	return d.hooked
}

// sleep parks the caller of Run until an Item is runnable.
func (d *Driven) sleep() {
	if d.parent == nil {
		d.parent = sched.NewThread()
	}
	if d.Sleep() {
		d.inParent = true
		for d.Asleep() {
			d.parent.Park()
		}
		d.inParent = false
	}
}

// helpSleep returns the switch with which a helper sleeps in the scheduler's place, while the goroutine of Run stays
// where it is. So a wait for another thread costs no switch. helpSleep returns nil if a hook is due or the Run is
// ending, because Run itself must call hooks and end tasks.
func (d *Driven) helpSleep() coro.Next {
	if d.ending || d.hook() != nil {
		return nil
	}
	if d.sleeps == nil {
		d.sleeps = d.sleepInTask
	}
	return d.sleeps
}

// sleepInTask is the switch that helpSleep returns.
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

// yieldEvery is how many steps a nested Run takes, if it is never idle, before it yields to the outer scheduler.
const yieldEvery = 64

func (d *Driven) wake() { d.parent.Unpark() }

// mainPanic is the error that Run returns if main has panicked and OnPanic has returned.
type mainPanic struct {
	name  string
	value any
}

func (e *mainPanic) Error() string { return fmt.Sprintf("%s: main panicked: %v", e.name, e.value) }

func (e *mainPanic) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

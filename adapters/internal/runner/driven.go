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
	*Runner
	next   func() *Item // takes the next Item, nil if there is none; itself nil: the one that has waited longest
	idle   idleHooks
	parent suspend.Task      // parks the caller of Run; set before the first sleep
	nested bool              // the caller is a task
	hooked func()            // taken from idle, and not called yet
	sleeps coro.Next         // sleepInTask
	before patience.Patience // sleeping
	others yieldtimer.Timer
	ran    atomicx.Bool

	ending   bool  // by End, or since the task was killed that Run is called in
	err      error // of End
	inParent bool  // the goroutine is in a method of parent
}

// NewDriven makes the core of self. next and onIdle are called on the goroutine of Run; a nil next is the Runner's own,
// first come, first served; a nil onIdle is not called.
func NewDriven(self suspend.Spawner, next func() *Item, onIdle func(), onPanic func(any, []byte)) *Driven {
	d := &Driven{next: next}
	d.idle.always = onIdle
	d.Runner = New(self, d.wake, onPanic)
	d.InOrder = next == nil
	d.shares = unknown
	return d
}

// A Drive is how one Run is done.
type Drive struct {
	Name         string // of the scheduler, in messages
	StallAfter   time.Duration
	OnStall      func(stack []byte)
	LockOSThread bool
}

// Drive runs main as a task, and everything else, until all has ended: the Run of a driven scheduler.
func (d *Driven) Drive(ctx context.Context, o Drive, main func(ctx context.Context) error) (err error) {
	if err := suspend.Err(ctx); err != nil {
		return err
	}
	nested := suspend.Current() != nil
	if o.LockOSThread && nested {
		panic(o.Name + ": Run with LockOSThread inside a task")
	}
	parent := suspend.Self()
	if !d.ran.CompareAndSwap(false, true) {
		return suspend.ErrClosed
	}
	d.parent, d.nested = parent, nested
	d.Own()
	if o.LockOSThread {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	} else if !d.nested && d.InOrder {
		d.sleeps = d.sleepInTask
		d.help.sleep = d.helpSleep // a parent that is a task, or whose thread is locked, has to park itself
	}
	stalls := coro.WatchStalls(o.StallAfter, o.OnStall)
	d.Watch(stalls)
	defer stalls.Stop()

	exited := true
	_ = d.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				exited = false
				err = &mainPanic{o.Name, v}
				panic(v)
			}
			if exited && d.ending { // killed
				exited, err = false, d.err
			}
		}()
		err = main(ctx)
		exited = false
	})
	d.loop()
	if exited {
		runtime.Goexit()
	}
	return err
}

// loop runs Items until everything has ended.
func (d *Driven) loop() {
	ended := false
	defer func() {
		if !ended { // a hook has panicked or exited; the tasks are not abandoned for that
			if d.inParent { // or the task was killed that Run is called in: so are those of the Run
				d.inParent, d.ending = false, true
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
			if !d.killAll() {
				d.abandon()
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
		d.hooked = d.idle.take(d.steps)
	}
	return d.hooked
}

// sleep parks the caller of Run until something is runnable.
func (d *Driven) sleep() {
	if d.Sleep() {
		d.inParent = true
		for d.Asleep() {
			d.parent.Park()
		}
		d.inParent = false
	}
}

// helpSleep returns the switch with which a helper sleeps for the scheduler: a task that waits for another thread then
// costs no switch. The goroutine of Run stays where it is meanwhile. Run itself calls the hooks and ends the
// tasks, so then helpSleep returns nil.
func (d *Driven) helpSleep() coro.Next {
	if d.ending || d.hook() != nil {
		return nil
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

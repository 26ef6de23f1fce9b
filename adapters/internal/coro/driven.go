package coro

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/patience"
	"github.com/braidgo/braid/suspend"
)

// A Driven is a Runner on the goroutine of whoever calls Run. What its scheduler brings is an order, and what to
// do before it sleeps.
type Driven struct {
	*Runner
	next   func() *Item      // what runs next, nil if nothing is runnable; itself nil: what has waited longest
	idle   func() func()     // a hook to call before sleeping, nil if there is none
	parent suspend.Task      // parks the caller of Run; set before the first sleep
	nested bool              // the caller is a task
	hooked func()            // by idle, and not called yet
	rest   Next              // sleepInTask
	before patience.Patience // sleeping
	ran    atomicx.Bool
}

// NewDriven makes the core of self. next and idle are called on the goroutine of Run; a nil next is the Runner's own,
// first come, first served.
func NewDriven(self suspend.Spawner, next func() *Item, idle func() func(), onPanic func(any, []byte)) *Driven {
	d := &Driven{next: next, idle: idle}
	d.Runner = NewRunner(self, d.wake, onPanic)
	d.InOrder = next == nil
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
		d.rest = d.sleepInTask
		d.Runner.doze = d.doze // where the parent is a task, or Run has a thread of its own, nobody else may park in its place
	}
	stalls := WatchStalls(o.StallAfter, o.OnStall)
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

// loop runs what is runnable until everything has ended.
func (d *Driven) loop() {
	ended := false
	defer func() {
		if !ended { // a hook has panicked or exited; the tasks are not abandoned for that
			d.loop()
		}
	}()
	for yielded := d.steps; ; {
		if d.runSome() {
			if d.nested && d.steps-yielded >= yieldEvery {
				suspend.Yield()
				yielded = d.steps
			}
		} else if d.CloseIfDone() {
			break
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

// hook returns what is to be called before sleeping, nil if there is nothing.
func (d *Driven) hook() func() {
	if d.hooked == nil && d.idle != nil {
		d.hooked = d.idle()
	}
	return d.hooked
}

// sleep parks the caller of Run until something is runnable.
func (d *Driven) sleep() {
	if d.Sleep() {
		for d.Asleep() {
			d.parent.Park()
		}
	}
}

// doze has a task that stands in sleep for the scheduler: one that waits for another thread costs no switch. The
// goroutine of Run stays where it is meanwhile. A hook is called by Run itself, so if there is one, doze returns nil.
func (d *Driven) doze() Next {
	if d.hook() != nil {
		return nil
	}
	return d.rest
}

func (d *Driven) sleepInTask() (none struct{}, ok bool) {
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

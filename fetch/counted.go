package fetch

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A counter starts tasks on a scheduler and counts those that are not parked. Zero is quiescence. It is exact for all waits
// through Braid; a task that waits natively counts as running, which delays a round and never splits one.
//
// -P> Park, -U> Unpark, by anybody; the number is what is counted.
//
//	running -P> parked   -1, and idle is called at zero
//	parked  -U> running  +1, and then the task is woken
//	running -U> woken    the permit
//	woken   -P> running  Park returns at once
//
// Invariant: a task that runs, or is going to since it was woken, is counted.
type counter struct {
	on      suspend.Spawner
	d       *driver
	running atomicx.Int64
	members atomicx.Int64 // tasks that have not ended
	guard   suspend.Guard
	waiter  suspend.Resumer[struct{}] // which waits for the last of them; guarded by guard
}

// counted runs body as a task of on.
func (r *invocation) counted(on suspend.Spawner) {
	c := &counter{on: on, d: &r.d}
	r.d.counter = c
	r.d.register(c)
	if err := c.Go(func() { _ = r.task(nil) }); err != nil {
		r.err = err
		return
	}
	_, _ = suspend.Wait[struct{}](context.Background(), c, false)
}

// Go implements suspend.Spawner.
func (c *counter) Go(f func()) error {
	c.running.Add(1)
	c.members.Add(1)
	err := c.on.Go(func() {
		defer c.leave()
		suspend.Bind(&countedTask{c: c, task: suspend.Self()}, f)
	})
	if err != nil {
		c.leave()
	}
	return err
}

// leave is the end of a task. It is still a member when it is counted out: what that calls belongs to the Run.
func (c *counter) leave() {
	if c.running.Add(-1) == 0 {
		c.d.idle()
	}
	if c.members.Add(-1) == 0 {
		c.guard.Lock()
		c.waiter.Resume(struct{}{}, nil)
		c.guard.Unlock()
	}
}

func (c *counter) quiet() bool { return c.running.Load() == 0 }

// The Run waits for the last member.
func (c *counter) Guard() *suspend.Guard                 { return &c.guard }
func (c *counter) Try() (v struct{}, ok bool, err error) { return v, c.members.Load() == 0, nil }
func (c *counter) Enqueue(r suspend.Resumer[struct{}])   { c.waiter = r }
func (c *counter) Remove(suspend.Resumer[struct{}])      {}

// AfterFunc is the timer of the scheduler, if it has any.
func (c *counter) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if on, ok := c.on.(interface {
		AfterFunc(time.Duration, func()) func() bool
	}); ok {
		return on.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// Block runs f on a goroutine, of those that the scheduler allows.
func (c *counter) Block(f func()) error {
	if on, ok := c.on.(interface{ Block(func()) error }); ok {
		return on.Block(f)
	}
	goroutine(f)
	return nil
}

// A countedTask is a task whose parking is counted.
type countedTask struct {
	c     *counter
	task  suspend.Task
	state atomicx.Uint32
}

const (
	running uint32 = iota
	parked
	woken
)

// Park implements suspend.Task.
func (t *countedTask) Park() {
	if !t.state.CompareAndSwap(running, parked) {
		t.state.Store(running) // it was woken, and an Unpark leaves a woken task alone
		return
	}
	if t.c.running.Add(-1) == 0 {
		t.c.d.idle()
	}
	for t.state.Load() == parked {
		t.task.Park()
	}
}

// Unpark implements suspend.Task. It counts before it decides: a task that is woken first may end before it is counted, and the
// count would be zero in between.
func (t *countedTask) Unpark() {
	for {
		switch t.state.Load() {
		case parked:
			t.c.running.Add(1)
			if t.state.CompareAndSwap(parked, running) {
				t.task.Unpark()
				return
			}
			if t.c.running.Add(-1) == 0 { // another has woken it, and it has parked again
				goroutine(t.c.d.idle) // there may be a lock
			}
		case running:
			if t.state.CompareAndSwap(running, woken) {
				return
			}
		default:
			return
		}
	}
}

// Yield lets others of the scheduler run.
func (t *countedTask) Yield() {
	if y, ok := t.task.(interface{ Yield() }); ok {
		y.Yield()
	} else {
		runtime.Gosched()
	}
}

// Spawner is where tasks that it starts run.
func (t *countedTask) Spawner() suspend.Spawner { return t.c }

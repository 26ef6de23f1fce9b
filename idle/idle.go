// Package idle reports when all tasks of a group wait.
//
// A layer that collects work wants to act as soon as its tasks can add none, and not after a timer: send the batch, flush
// the buffer, end the test. A [Group] starts tasks on a scheduler and counts the tasks that are not suspended:
//
//	g := idle.New(on, func() { flush() })
//	_ = g.Go(handle)
//
// The count is exact for all waits through Braid, on any scheduler and across several. A task that waits natively counts
// as running: the group is idle late, and never early.
//
// The schedulers fifo and random need no count to see that none of their tasks is runnable: their Options have an
// OnIdle.
package idle

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
)

// A Group is a Spawner that counts its tasks. It is idle while each of them is suspended or has ended. All methods may be
// called from any goroutine. It is made by New.
type Group struct {
	// A task is counted in running while it runs, and from the moment it is woken, see task. -G> is a Go, -P> a task that
	// parks or ends, -U> a task that is woken.
	//
	//	n  -G> n+1
	//	n  -U> n+1
	//	n  -P> n-1    at 0 the group is idle, and the task must call idle, or nothing would
	//
	// Invariant: a task that runs, or that is going to, is counted.
	running atomicx.Int64
	live    atomicx.Int64 // tasks that have not ended; written after running

	on     suspend.Spawner
	onIdle func()

	guard  suspend.Guard
	idlers suspend.Queue[struct{}, struct{}] // wait until running is 0
	enders suspend.Queue[struct{}, struct{}] // wait until live is 0
}

// New returns a Group whose tasks run on a scheduler.
//
// The Group calls onIdle, if it is not nil, each time it becomes idle: in the task that was the last to run, before it
// parks, or in a task that is started for it; after a Go that is refused, on a goroutine. onIdle must not suspend. It
// may resume tasks and start some. Calls may overlap, and during a call the group may be busy again, see Idle. A nil
// Spawner panics.
func New(on suspend.Spawner, onIdle func()) *Group {
	if on == nil {
		panic("idle: nil Spawner")
	}
	return &Group{on: on, onIdle: onIdle}
}

// Go starts f as a task of the group. If the scheduler refuses, Go returns its error. A nil function panics.
func (g *Group) Go(f func()) error {
	if f == nil {
		panic("idle: nil function")
	}
	suspend.Point()
	preempt.Looks(preempt.Members) // whether the group was idle before
	g.running.Add(1)
	g.live.Add(1)
	started := false
	defer func() {
		if !started { // refused, or the Spawner has panicked
			g.refused()
		}
	}()
	err := g.on.Go(func() {
		defer g.leave()
		suspend.Bind(&task{g: g, Task: suspend.Self()}, f)
	})
	started = err == nil
	return err
}

// refused counts out a task that does not begin. The caller of Go may hold locks, and the scheduler is closed, so
// onIdle must be called on a goroutine.
func (g *Group) refused() {
	if g.running.Add(-1) == 0 {
		go g.idle()
	}
	g.gone()
}

// Unwrap returns the scheduler, for suspend.As.
func (g *Group) Unwrap() suspend.Spawner { return g.on }

// Idle reports whether the group is idle. A task that waits for a timer, or for another scheduler, may end that at any
// time.
func (g *Group) Idle() bool {
	preempt.Glance(preempt.Members)
	return g.running.Load() == 0
}

// Live returns the number of tasks that have not ended.
func (g *Group) Live() int {
	preempt.Glance(preempt.Members)
	return int(g.live.Load())
}

// WaitIdle suspends the caller until the group is idle. A caller that is a task of the group does not count while it
// waits. If ctx is done first, or already, WaitIdle returns the error of the cancellation.
func (g *Group) WaitIdle(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, state{g, &g.running, &g.idlers}, false)
	return err
}

// Wait suspends the caller, which is no task of the group, until all tasks have ended. If ctx is done first, or already,
// Wait returns the error of the cancellation.
func (g *Group) Wait(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, state{g, &g.live, &g.enders}, false)
	return err
}

// parks counts a task out.
func (g *Group) parks() {
	if g.running.Add(-1) == 0 {
		g.idle()
	}
}

// leave is the end of a task. It is live while idle is called: what that starts belongs to the group.
func (g *Group) leave() {
	preempt.Releases(preempt.Members)
	g.parks()
	g.gone()
}

func (g *Group) gone() {
	if g.live.Add(-1) == 0 {
		g.guard.Lock()
		g.enders.ResumeAll(struct{}{}, nil)
		g.guard.Unlock()
	}
}

func (g *Group) idle() {
	g.guard.Lock()
	if g.Idle() {
		g.idlers.ResumeAll(struct{}{}, nil)
	}
	g.guard.Unlock()
	if g.onIdle != nil {
		suspend.Bind(nil, g.onIdle)
	}
}

// idleElsewhere is idle for a caller that may hold locks.
func (g *Group) idleElsewhere() {
	if g.on.Go(g.idle) != nil {
		go g.idle()
	}
}

// A state is the Source of a count that gets to 0.
type state struct {
	*Group
	count   *atomicx.Int64
	waiters *suspend.Queue[struct{}, struct{}]
}

func (s state) Guard() *suspend.Guard                 { return &s.guard }
func (s state) Try() (v struct{}, ok bool, err error) { return v, s.count.Load() == 0, nil }
func (s state) Enqueue(r suspend.Resumer[struct{}])   { s.waiters.Push(r, struct{}{}) }
func (s state) Remove(r suspend.Resumer[struct{}])    { s.waiters.Remove(r) }

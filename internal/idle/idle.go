// Package idle detects when all tasks of a group are waiting.
//
// Waiting tasks cannot add work, so a program can then send a batch, flush a buffer or end a test, instead of using a
// timer. A [Group] starts tasks on a scheduler and counts the tasks that are not suspended:
//
//	g := idle.New(on, func() { flush() })
//	_ = g.Go(handle)
//
// The count is exact for all waits in Braid operations, on any scheduler and across schedulers. A task that waits natively
// counts as running, so the group may become idle too late, but never too early.
//
// To detect that no task of a fifo or random scheduler is runnable, use OnIdle in the scheduler's Options instead.
package idle

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/ledger"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Group is a Spawner that counts its tasks. It is idle while each of its tasks is suspended or has ended. All methods may
// be called from any goroutine.
type Group struct {
	// A task is counted in g.running from its start or wake-up until it parks or ends; see the type task. -G> is a Go,
	// -P> a task that parks or ends, -U> a task that is woken.
	//
	//	n  -G> n+1
	//	n  -U> n+1
	//	n  -P> n-1    at 0 the group is idle, and this task must call g.idle
	//
	// Invariant: every task that runs, or has been woken, is counted in g.running.
	running atomicx.Int64
	tasks   tasks

	on     suspend.Spawner
	onIdle func()

	guard  suspend.Guard
	idlers suspend.Queue[struct{}, struct{}] // tasks in WaitIdle, which wait until no task is running
}

// The tasks of a Group that have not ended hold this object in the ledger. It has a guard of its own, so that the ledger can tell a Wait,
// which waits for each of the tasks, from a WaitIdle.
type tasks struct {
	live   atomicx.Int64 // the number of tasks that have not ended; changed after g.running
	guard  suspend.Guard
	enders suspend.Queue[struct{}, struct{}] // tasks in Wait, which wait until no task is live
}

// New returns a Group that starts its tasks by calling on.Go.
//
// If onIdle is not nil, the Group calls it each time the Group becomes idle: in the last running task before this task
// parks, or in a new task, or, after a Go that was refused, on a new goroutine. So onIdle must not acquire a lock that a task
// holds while it waits. onIdle must not suspend, but may resume tasks and start tasks. Calls may overlap, and the Group may
// no longer be idle during a call; see Idle. If onIdle panics or exits, so does the task that has called it, as if its Park
// had done so, but the Group keeps its counts. New panics if on is nil.
func New(on suspend.Spawner, onIdle func()) *Group {
	if on == nil {
		panic("idle: nil Spawner")
	}
	return &Group{on: on, onIdle: onIdle}
}

// Go starts f as a task of the group. If the scheduler refuses the task, Go returns the scheduler's error. Go panics if f
// is nil.
func (g *Group) Go(f func()) error { return g.GoUntil(context.Background(), f, func() {}) }

// GoUntil implements sched.Withdrawer.
func (g *Group) GoUntil(ctx context.Context, f, withdrawn func()) error {
	if f == nil {
		panic("idle: nil function")
	}
	suspend.Point()
	preempt.Looks(preempt.Members) // the group may be idle before this call
	g.running.Add(1)
	preempt.Releases(preempt.Members) // Idle can observe the first change before Live observes the second
	g.tasks.live.Add(1)
	started := false
	defer func() {
		if !started { // the Spawner has refused the task, or has panicked
			g.dropped(true)
		}
	}()
	run := func() {
		defer g.taskEnded()
		if ledger.On() { // a task that begins before the census does not report its end, which would count for another task
			ledger.Took(&g.tasks)
			defer ledger.Gave(&g.tasks)
		}
		suspend.Bind(&task{g: g, Task: suspend.Self()}, f)
	}
	var err error
	if w, ok := g.on.(sched.Withdrawer); ok {
		err = w.GoUntil(ctx, run, func() {
			defer g.dropped(suspend.Err(ctx) != nil)
			withdrawn()
		})
	} else {
		err = g.on.Go(run)
	}
	started = err == nil
	return err
}

// dropped decrements both counts for a task that never begins. If the caller may hold locks, as the caller of a Go may, g.idle is
// called on a new goroutine. Otherwise dropped was called as a callback.
func (g *Group) dropped(mayHoldLocks bool) {
	defer g.gone()
	switch {
	case g.running.Add(-1) > 0:
	case mayHoldLocks:
		go g.idle()
	default:
		g.idle()
	}
}

// Unwrap returns the scheduler, for suspend.As.
func (g *Group) Unwrap() suspend.Spawner { return g.on }

// Idle reports whether the group is idle. The result may change at any time, for example when a timer or another scheduler
// wakes a task.
func (g *Group) Idle() bool {
	preempt.Glance(preempt.Members)
	return g.running.Load() == 0
}

// Live returns the number of tasks that have not ended.
func (g *Group) Live() int {
	preempt.Glance(preempt.Members)
	return int(g.tasks.live.Load())
}

// WaitIdle suspends the caller until the group is idle. A caller that is a task of the group does not count while it waits.
// If ctx has ended, or ends first, WaitIdle returns the cancellation error.
func (g *Group) WaitIdle(ctx context.Context) error {
	_, err := suspend.Wait[struct{}](ctx, state{&g.guard, &g.running, &g.idlers})
	return err
}

// Wait suspends the caller until all tasks have ended. If ctx has ended, or ends first, Wait returns the cancellation error.
// Wait panics if its caller is a task of the group, because it would wait for itself; see WaitIdle.
func (g *Group) Wait(ctx context.Context) error {
	if g.runs(suspend.Current()) {
		panic("idle: Wait called by a task of the Group")
	}
	_, err := suspend.Wait[struct{}](ctx, state{&g.tasks.guard, &g.tasks.live, &g.tasks.enders})
	return err
}

// runs reports whether t is a task of the group, or decorates one.
func (g *Group) runs(t suspend.Task) bool {
	for t != nil {
		if own, ok := t.(*task); ok && own.g == g {
			return true
		}
		w, wraps := t.(interface{ Unwrap() suspend.Task })
		if !wraps {
			return false
		}
		t = w.Unwrap()
	}
	return false
}

// parks decrements g.running, and calls g.idle if no task is running then.
func (g *Group) parks() {
	if g.running.Add(-1) == 0 {
		g.idle()
	}
}

// taskEnded records the end of a task. The task counts as live until onIdle has returned, so that a Wait also waits for tasks
// that onIdle starts.
func (g *Group) taskEnded() {
	preempt.Releases(preempt.Members)
	defer g.gone() // onIdle may panic
	g.parks()
}

func (g *Group) gone() {
	if t := &g.tasks; t.live.Add(-1) == 0 {
		t.guard.Lock()
		t.enders.ResumeAll(struct{}{}, nil)
		t.guard.Unlock()
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

// idleElsewhere calls g.idle in a new task or goroutine, because its caller may hold locks.
func (g *Group) idleElsewhere() {
	if g.on.Go(g.idle) != nil {
		go g.idle()
	}
}

// A state is a Source that is ready when its count is 0.
type state struct {
	guard   *suspend.Guard
	count   *atomicx.Int64
	waiters *suspend.Queue[struct{}, struct{}]
}

func (s state) Guard() *suspend.Guard                 { return s.guard }
func (s state) Try() (v struct{}, ok bool, err error) { return v, s.count.Load() == 0, nil }
func (s state) Enqueue(r suspend.Resumer[struct{}])   { s.waiters.Push(r, struct{}{}) }
func (s state) Remove(r suspend.Resumer[struct{}])    { s.waiters.Remove(r) }

package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// This file is the life of a task: how it waits and wakes, the fleet that its coroutine comes from and goes back to, and its end in a crash.

// Leave implements sched.Switcher.
func (t *task) Leave() (next coro.Next, yield coro.Yield) {
	if t.mark == woken {
		t.mark = active
		return nil, nil
	}
	t.mark = parked
	return nil, t.Coroutine.Leave(coro.Parked)
}

// LeaveReady implements sched.Switcher. The seed picks the next task.
func (t *task) LeaveReady() (next coro.Next, yield coro.Yield) {
	w := t.world.Load()
	w.ready = append(w.ready, ready{host: t.host, task: t})
	return nil, t.Coroutine.Leave(coro.Yielded)
}

// Preempt implements Options.Preempt, see suspend.Preemptible. If another task could run, Preempt returns true with probability 1/2.
func (t *task) Preempt() (yield bool) {
	w := t.world.Load()
	if w.still {
		w.still = false
		return false
	}
	return w.o.Preempt && t == w.current && !w.tearingDown && !t.host.dead && len(w.ready) > 0 && w.dice.order.Below(2) > 0
}

// Back implements sched.Switcher. It is never called, because Leave never returns a task to switch to.
func (t *task) Back() (next coro.Next, yield coro.Yield) { return nil, nil }

// Unpark implements suspend.Task.
func (t *task) Unpark() {
	switch w := t.world.Load(); {
	case w == nil: // the function of the task has ended
	case !w.on():
		_ = w.fromOutside(ready{task: t})
	case t.mark == parked:
		t.rouse()
	default:
		t.mark = woken
	}
}

// resume switches to t during a step. Crash runs other tasks this way.
func (t *task) resume() {
	w := t.host.world
	t.under, w.current = w.current, t
	w.fleet.stalls.Begin()
	t.Next()()
	w.current, t.under = t.under, nil
	w.fleet.left(t)
}

// exitIfKilled ends the calling task if the task has crashed its own node. Without a task it does nothing.
func (t *task) exitIfKilled() {
	if t != nil {
		t.ExitIfKilled()
	}
}

// Spawner returns the task's World or Node.
func (t *task) Spawner() suspend.Spawner { return t.host.spawner }

// Another implements coro.Owner. It returns nil, because each start of a task is a separate step.
func (t *task) Another() func() { return nil }

// Panicked implements coro.Owner.
func (t *task) Panicked(value any, stack []byte) { t.world.Load().panicked(value, stack) }

// drop discards r, which will not run. It always returns true, as slices.DeleteFunc needs.
func (r ready) drop() bool {
	if r.as != nil && r.as != callback {
		r.as.gone()
	}
	return true
}

func newFleet(o Options) *fleet {
	l := &fleet{stalls: coro.WatchStalls(o.StallAfter, nil), limit: 8 * cmp.Or(o.StallAfter, time.Second), hangs: make(chan error, 1)}
	if l.stalls != nil {
		l.stalls.About(l.stalled)
	}
	return l
}

// stalled returns the name and the remedy for the report of a stalled task. The name contains the seed, because the run itself may never
// end and report the seed. A native wait longer than the limit ends the run: under Test and Check at once, and under Run when the wait
// ends.
func (l *fleet) stalled(goroutine int64, waits time.Duration) (name, remedy string) {
	t := l.find(goroutine)
	if t == nil {
		return "a task", inWorld
	}
	h, id := t.label.Load(), t.nth.Load()
	if h == nil {
		return "a task", inWorld
	}
	w := h.world
	w.mu.Lock()
	defer w.mu.Unlock()
	name, remedy = taskName(&h.place, int(id)), inWorld
	if w.foreign != nil {
		remedy += "\nbefore it, a goroutine outside the World had called: " + w.foreign.Error()
	}
	if waits >= l.limit && !w.closed {
		w.foreign = fmt.Errorf("simulation: seed %d: %s: %w: %s\n%s", w.o.Seed, name, errNative, remedy, frame(frames(maps.Collect(gid.Stacks())[goroutine])))
		w.called.Store(true)
		select {
		case l.hangs <- w.foreign:
		default:
		}
	}
	return fmt.Sprintf("simulation: seed %d: %s", w.o.Seed, name), remedy
}

func (w *World) panicked(value any, stack []byte) {
	if t := w.current; w.tearingDown || t != nil && t.host.dead { // a deferred function of a killed task has panicked
		return
	}
	if f := w.o.OnPanic; f != nil {
		if f(value, stack); !errors.Is(w.err, errExited) { // if err is errExited, main itself has panicked
			return
		}
	}
	w.fail(fmt.Errorf("simulation: %w\n%s", &suspend.PanicError{Value: value, Stack: stack}, stack))
}

const inWorld = "no other task of its World runs meanwhile. Wait with package suspend or a primitive of Braid"

// startTask returns a coroutine that is about to run f as a task of h.
func (l *fleet) startTask(w *World, h *host, f func()) *task {
	var t *task
	if n := len(l.idle); n > 0 {
		t = l.idle[n-1]
		l.idle = l.idle[:n-1]
	} else {
		t = new(task)
		t.place.Value, t.made.Value = t, t
		t.Init(t)
		t.WatchedBy(l.stalls)
		l.mu.Lock()
		l.all.Push(&t.made)
		l.mu.Unlock()
	}
	t.world.Store(w)
	t.host, t.mark = h, active
	h.born++
	t.id = h.born
	t.nth.Store(int64(t.id))
	t.label.Store(h)
	h.tasks.Push(&t.place)
	t.Start(f)
	return t
}

// left is called when the coroutine t has yielded. If its task has ended, t goes back to the pool.
func (l *fleet) left(t *task) {
	if t.Why() < coro.Ended {
		return
	}
	h := t.host
	h.tasks.Remove(&t.place)
	if f := h.reboot; f != nil && h.tasks.First() == nil {
		h.reboot = nil
		_ = h.world.Execute(f)
	}
	t.host = nil
	t.world.Store(nil)
	t.label.Store(nil)
	if t.Why() == coro.Exited {
		l.mu.Lock()
		l.all.Remove(&t.made)
		l.mu.Unlock()
		t.Reap()
	} else {
		l.idle = append(l.idle, t)
	}
}

// stop ends all coroutines. If a hanging run still uses the coroutines, stop waits for the end of the run in the background.
func (l *fleet) stop() {
	if hung := l.hung; hung != nil {
		l.hung = nil
		go func() { <-hung; l.stop() }()
		return
	}
	for _, t := range l.idle {
		t.Stop()
	}
	l.idle = nil
	l.stalls.Stop()
}

// endTasks ends the tasks of hosts before it returns, except a task that is calling Crash, which ends when the Crash returns. A deferred
// function may wait for another task that is ending. If none of the tasks can run, or if they do not end, endTasks ends their waits again.
func endTasks(w *World, hosts ...*host) {
	for _, h := range hosts {
		w.ready = append(w.ready, h.held...)
		h.held = nil
	}
	for left := 1; left > 0; {
		left = 0
		for _, h := range hosts {
			left += h.kill()
		}
		for turns := 64 * (left + 1); turns > 0 && runReady(w, hosts); turns-- {
		}
	}
	w.ready = slices.DeleteFunc(w.ready, func(r ready) bool { return r.task == nil && slices.Contains(hosts, r.host) && r.drop() })
}

// kill makes each task of h end at its current wait, or else at its next wait. Each task ends when it runs again. kill returns the number
// of tasks that can run. A task that is calling Crash does not count, because it cannot run before the Crash returns. A task under a Shield
// does not count, because it ends only after its wait for a task elsewhere.
func (h *host) kill() (left int) {
	for n := h.tasks.First(); n != nil; n = n.Next() {
		t := n.Value
		if t.Kill(); t.mark == parked { // a goroutine outside the World has ended the wait of t, but its call of t.Unpark was refused
			t.rouse()
		}
		if !t.Shielded() && !h.world.running(func(r *task) bool { return r == t }) {
			left++
		}
	}
	return left
}

// running reports whether is(t) is true for the running task t, or for a task t that is calling Crash.
func (x *outside) running(is func(t *task) bool) bool {
	for t := x.current; t != nil; t = t.under {
		if is(t) {
			return true
		}
	}
	return false
}

// runReady runs a ready task of hosts, or drops a function of hosts that has not begun. It returns false if there is no such task or
// function.
func runReady(w *World, hosts []*host) bool {
	for i, r := range w.ready {
		if slices.Contains(hosts, r.host) {
			w.ready = slices.Delete(w.ready, i, i+1)
			if r.task != nil {
				r.task.resume()
			} else {
				r.drop()
			}
			return true
		}
	}
	return false
}

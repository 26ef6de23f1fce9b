package simulation

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/dlist"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A task is a coroutine of a World, with the state of the task that runs on it, if any. In the diagram, -T> is a transition by the task,
// and -U> is a transition by Unpark.
//
//	active -T> parked   Park. The switch follows
//	parked -U> active   and the task is ready
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
type task struct {
	world atomicx.Pointer[World] // the World, or nil while idle; atomic because goroutines outside the World may call Unpark
	coro.Coroutine
	host  *host
	id    int                   // the task's number on its host
	label atomicx.Pointer[host] // this and the next field are copies of host and id for the report of a stall
	nth   atomicx.Int64
	mark  uint8
	under *task    // the task whose call of Crash has resumed this task
	by    *guestID // the guest whose call the task executes, or nil

	place dlist.Node[*task] // the task's place in host.tasks, which lists all tasks that have begun and not ended, the oldest first
	made  dlist.Node[*task] // the task's place in fleet.all
}

const (
	active uint8 = iota
	parked
	woken
)

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

// rouse makes a parked task ready.
func (t *task) rouse() {
	w := t.host.world
	t.mark = active
	host, id := w.caller()
	w.note(event{kind: wakes, quiet: t.by != nil, host: host, task: id, of: &t.host.place, n: t.id})
	w.ready = append(w.ready, ready{host: t.host, task: t})
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

// A ready is an entry of World.ready: a task to resume, a task to begin, or a callback.
type ready struct {
	host *host
	task *task  // the task to resume, or nil if f is to run
	f    func() // the function of a task to begin, or a callback
	as   *way   // how f is called; nil for an ordinary task
}

// A way says how the function f of a ready is called. It is a separate struct because each step copies a value of type ready.
type way struct {
	gone func()   // called if the task is dropped before it begins
	by   *guestID // the guest whose call the task executes
}

var callback = new(way)

// letIn accepts a call from outside the World.
func (r ready) letIn(w *World) {
	switch t := r.task; {
	case t == nil:
		w.ready = append(w.ready, r)
	case t.mark == parked:
		t.rouse()
	default:
		t.mark = woken
	}
}

// hostNumber returns the number of r's host, and r.number() returns the number of r's task.
func (r ready) hostNumber() int {
	if r.task != nil {
		return r.task.host.at().number() // the number is 0 if the task has ended
	}
	return r.host.at().number()
}

func (r ready) number() int {
	if r.task == nil {
		return 0
	}
	return r.task.id
}

// drop discards r, which will not run. It always returns true, as slices.DeleteFunc needs.
func (r ready) drop() bool {
	if r.as != nil && r.as != callback {
		r.as.gone()
	}
	return true
}

// A fleet is a pool of coroutines. Successive Worlds of a Test share a fleet, because creating a coroutine takes longer than most tasks.
type fleet struct {
	idle   []*task
	stalls *coro.Stalls
	limit  time.Duration // the longest native wait that is allowed
	hangs  chan error    // receives the error of a native wait over the limit
	hung   <-chan Report // receives the report of a hanging run, which still uses these coroutines

	mu  atomicx.Mutex // guards the following list, which goroutines outside the World read, too
	all dlist.List[*task]
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

// account adds details to err: the seed, the step and the time, the place where each task waits, and each wait without a task.
func (w *World) account(err error) error {
	stacks := maps.Collect(gid.Stacks())
	var b strings.Builder
	for _, h := range w.hosts {
		for n := h.tasks.First(); n != nil; n = n.Next() {
			t := n.Value
			state := "waits"
			switch {
			case t == w.current:
				state = "runs"
			case h.paused:
				state = "is paused"
			case t.Why() == coro.Yielded || t.mark != parked:
				state = "could run"
			}
			fmt.Fprintf(&b, "\n\n%s %s:\n%s", taskName(&h.place, t.id), state, frame(frames(stacks[t.ID()])))
		}
		for n := h.holds.First(); n != nil; n = n.Next() {
			fmt.Fprintf(&b, "\n\n%s is held by a wait without a task, which began at:\n%s", cmp.Or(h.name, "the World"), frame(n.Value.stack()))
		}
	}
	if g := w.guests; g != nil {
		b.WriteString(g.byNode(stacks))
	}
	b.WriteString(w.fleet.strays(stacks))
	return fmt.Errorf("simulation: seed %d, step %d, %v: %w%s", w.o.Seed, w.steps, w.clock.now, err, b.String())
}

// strays describes the live goroutines that tasks have started. The program may expect such a goroutine to wake a task, but the goroutine
// must not call into the World.
func (l *fleet) strays(stacks map[int64][]byte) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(stacks)) {
		_, by, _ := bytes.Cut(stacks[id], []byte("\ncreated by "))
		line, _, _ := bytes.Cut(by, []byte{'\n'})
		_, parent, ok := bytes.Cut(line, []byte(" in goroutine "))
		n, _ := strconv.ParseInt(string(parent), 10, 64)
		if ok && l.find(n) != nil && l.find(id) == nil && !bytes.HasPrefix(by, []byte("iter.Pull")) {
			fmt.Fprintf(&b, "\n\na goroutine that a task has started, outside the World:\n%s", frame(frames(stacks[id])))
		}
	}
	return b.String()
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

// find returns the task on the goroutine with this id, or nil if there is none.
func (l *fleet) find(id int64) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := l.all.First(); n != nil; n = n.Next() {
		if n.Value.ID() == id {
			return n.Value
		}
	}
	return nil
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

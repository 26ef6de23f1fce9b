package simulation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/internal/preempt"
	"github.com/braidgo/braid/simulation/internal/seeds"
	"github.com/braidgo/braid/suspend"
)

// Run runs main as the first task of a new World, with all tasks that main starts, until main returns. Then Run ends the remaining tasks as
// Crash does. Run does not suspend its caller, except in a bubble, where it parks the caller while no task can run.
//
// The run fails, and all its tasks end, in these cases:
//
//   - Nothing more can happen, but main has not returned: ErrDeadlock.
//   - A goroutine outside the World calls into the World: ErrForeign.
//   - A task panics: *suspend.PanicError.
//   - The run reaches MaxSteps or MaxTime: ErrSteps or ErrTime.
//   - main calls runtime.Goexit, as t.FailNow does: an error with the place of the call.
//
// If a callback or a function passed to Always calls runtime.Goexit, Run's caller ends, too; under Check and Test this error fails
// the run instead. The context that Run passes to main is never cancelled.
func Run(main func(ctx context.Context, w *World) error, o Options) Report {
	w := newWorld(o)
	if o.Guests {
		return Report{Seed: w.o.Seed, Err: errGuests}
	}
	w.run(main)
	return w.report()
}

func (w *World) report() Report {
	used := func(name string) bool { return w.nodes[name] != nil && w.nodes[name].used }
	return Report{Seed: w.o.Seed, Hash: w.hash, Steps: w.steps, Elapsed: w.clock.now, Err: w.err, Sometimes: w.marks, Hits: w.hits(used, w.o.Trace), came: w.came}
}

// hits returns the names of the nodes that have had a fault, with true for each node that was used. It writes the other names to the trace.
func (j *journal) hits(isUsed func(name string) bool, trace io.Writer) (used map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(j.harmed)) {
		if used == nil {
			used = map[string]bool{}
		}
		used[name] = isUsed(name)
	}
	if missed := seeds.Missed(used); len(missed) > 0 && trace != nil {
		_, _ = fmt.Fprintf(trace, "%s: faults, but no task, guest, listener, dial or file on a node of this name\n", strings.Join(missed, ", "))
	}
	return used
}

// loop is the scheduler. Each round runs a step, fires timers or sleeps. The switch to a task is in this function itself, because after a
// switch the processor mispredicts all returns.
func (w *World) loop() {
	for !w.over {
		for _, t := range w.watches.ended() {
			w.ready = append(w.ready, ready{host: t.of.(*host), f: t.fire, as: callback})
		}
		switch {
		case w.called.Load():
			w.admit() // Other goroutines have queued calls.
		case w.steps >= w.o.MaxSteps:
			w.fail(w.account(ErrSteps))
		case len(w.ready) > 0:
			if t := w.pickReady(); t != nil {
				w.current = t
				w.fleet.stalls.Begin()
				t.Next()()
				w.current = nil
				w.fleet.left(t)
			}
			w.waitForBubble()
		case w.o.MaxTime > 0 && w.clock.now > w.o.MaxTime:
			w.fail(w.account(ErrTime))
		case w.clock.due():
			w.advance() // Nothing can run, so the clock jumps to the next timer.
		default:
			w.sleep() // Guests or a bubble must wake the World. Otherwise this is a deadlock.
		}
		w.verify()
	}
}

// pickReady removes an entry from w.ready, and picks each entry with the same probability. If the entry is a task that can run, it returns
// the task. Otherwise it handles the entry itself, and returns nil.
func (w *World) pickReady() *task {
	n := len(w.ready)
	i := w.dice.order.Below(n)
	r := w.ready[i]
	w.ready[i] = w.ready[n-1]
	w.ready[n-1] = ready{}
	w.ready = w.ready[:n-1]
	h, t := r.host, r.task
	switch {
	case h.paused:
		h.held = append(h.held, r)
		return nil
	case t == nil && h.dead:
		r.drop()
		return nil
	}
	w.steps++
	kind := resumed
	switch {
	case r.as == callback:
		w.note(event{kind: called, host: &h.place, n: n})
		w.runCallback(r.f)
		return nil
	case t == nil:
		t, kind = w.fleet.startTask(w, h, r.f), begun
		if t.by = nil; r.as != nil {
			t.by = r.as.by
		}
	}
	w.note(event{kind: kind, quiet: t.by != nil, host: &h.place, task: t.id, n: n})
	return t
}

// advance moves the clock forward to the next timer. Timers for the same time fire in the order in which they were set. Then the seed picks
// among all tasks that these timers have woken. A timer that is set during advance must wait for the next advance: otherwise a timer that
// always sets itself again would prevent all tasks from running.
func (w *World) advance() {
	at := max(w.clock.timers.heap[0].at, w.clock.now)
	if w.o.MaxTime > 0 && at > w.o.MaxTime {
		w.clock.now = w.o.MaxTime
		w.fail(w.account(ErrTime))
		return
	}
	w.clock.now = at
	last := w.clock.timers.seq
	for {
		w.clock.timers.remove(0).fire(w)
		if len(w.clock.timers.heap) == 0 || w.clock.timers.heap[0].at > at || w.clock.timers.heap[0].seq > last {
			return
		}
		if w.verify(); w.over || w.steps >= w.o.MaxSteps {
			return
		}
	}
}

// run implements Run.
func (w *World) run(main func(ctx context.Context, w *World) error) {
	if w.fleet = w.o.fleet; w.fleet == nil {
		w.fleet = newFleet(w.o)
		defer w.fleet.stop()
	}
	if w.err = w.prepare(); w.err != nil {
		return
	}
	if w.o.Preempt {
		defer preempt.Begin()()
	}
	first := func() {
		err := errExited
		defer func() {
			if err == errExited {
				err = exit()
			}
			w.do(func() { w.mainEnded(err, w.o.open) })
		}()
		err = main(context.Background(), w)
	}
	suspend.Bind(nil, func() {
		defer w.tearDown()
		if w.guests == nil {
			w.ready = append(w.ready, ready{host: &w.host, f: first})
		} else {
			w.guests.start(&w.host, nil, first)
		}
		w.loop()
	})
}

func (t *timer) fire(w *World) {
	switch h, ok := t.of.(*host); {
	case !ok: // the function of a network timer records its own event
		w.steps++
		t.f()
	case h.dead:
	case h.paused:
		t.late = true
		h.held = append(h.held, ready{host: h, as: callback, f: func() {
			if t.clearLate() {
				t.f()
			}
		}})
	default:
		w.steps++
		w.note(event{kind: fired, host: &h.place, data: t.seq})
		w.runCallback(t.f)
	}
}

var errGuests = errors.New("simulation: Options.Guests needs simulation.Test, which gives each run a bubble")

// runCallback calls the callback f on Run's goroutine, where suspending is forbidden.
func (w *World) runCallback(f func()) {
	defer labels.Here().Put() // restores the labels of Run's caller, which f must not inherit
	labels.Clear()
	defer func() {
		if v := recover(); v != nil {
			w.panicked(v, debug.Stack())
		}
	}()
	f()
}

// tearDown ends all remaining tasks, and releases the memory of the run.
func (w *World) tearDown() {
	w.over, w.tearingDown = true, true
	if foreign := w.close(); foreign != nil {
		w.err = foreign // main's error may wrap ErrForeign, too, but does not contain the stack
	}
	endTasks(w, w.hosts...)
	for _, h := range w.hosts { // no task that could end a wait under a Shield is left
		for n := h.tasks.First(); n != nil; n = n.Next() {
			n.Value.Unshield()
		}
	}
	endTasks(w, w.hosts...)
	for _, t := range w.watches { // a context may outlive the run
		t.stop()
	}
	w.clock.clear()
	w.ready, w.always, w.watches = nil, nil, nil // a connection that outlives the run keeps the World in memory
	w.fleet.stalls.End()
}

// Always registers a function that the World calls after each further step, including the step in which main returns. If the function
// returns an error, the run fails with this error. The function must not suspend.
func (w *World) Always(holds func() error) {
	if holds == nil {
		panic("simulation: Always with a nil function")
	}
	w.do(func() { w.always = append(w.always, holds) })
}

// verify calls all functions that were passed to Always. The run fails if such a function returns an error.
func (w *World) verify() {
	for _, holds := range w.always {
		w.runCallback(func() {
			if err := holds(); err != nil {
				w.fail(err)
			}
		})
	}
}

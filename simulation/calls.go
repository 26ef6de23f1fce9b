package simulation

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"

	"github.com/braidgo/braid/simulation/internal/draws"
	"github.com/braidgo/braid/suspend"
)

// This file is the door of a World. A call enters through one of two entries: tasks and callbacks have one, and guests have the other. The
// entry determines how a caller waits, and which calls it may make at once. Other files ask at most whether effects are deferred, see
// outside.defers.

// An entry is a way into a World, for tasks and callbacks or for guests.
type entry interface {
	beginCall() bool // begins a call, and reports whether the caller may call
	endCall()        // ends the call
	refused() error  // returns the error of a call that may not begin
	leave()          // ends a guest whose call may not begin
	do(f func())     // calls f on the World, and waits until f returns
	brief(f func())  // is do for calls that the program expects to return soon: a guest that may hold locks does not end there
	post(f func())   // calls f on the World; a guest does not wait for the call
	wait(t *turn)    // suspends the caller, which has entered here, until t is woken
	wake(t *turn)    // wakes the caller of t, which has entered here
	resume(t *turn)  // wakes the task of t, on behalf of the caller that has entered here

	late(count *int) // counts a call that is about to fail because the node of the caller has crashed
}

// entrance returns the entry of the caller.
func (w *World) entrance() entry {
	if g := w.guests; g != nil && !w.on() {
		return g
	}
	return tasks{w}
}

// do calls f on the World, and waits until f returns. It does nothing if the caller may not call.
func (w *World) do(f func()) { w.entrance().do(f) }

// brief calls f on the World, and returns the result of f. It returns an error if the caller may not call, and never ends a guest.
func (w *World) brief(f func() error) error {
	e := w.entrance()
	err := e.refused()
	e.brief(func() { err = f() })
	return err
}

// A turn is an operation in a line.
type turn struct {
	by   entry
	r    suspend.Resumer[struct{}] // resumes a task
	woke chan struct{}             // wakes a guest
}

// A line is a queue of turns. Only the first of them may complete.
type line []*turn

// enqueue adds an operation of the caller to the line. It returns nil if a task may not call, and ends a guest that may not call.
func (s *line) enqueue(w *World) *turn {
	t := &turn{by: w.entrance()}
	if !t.by.beginCall() {
		t.by.leave()
		return nil
	}
	*s = append(*s, t)
	return t
}

// dequeue removes the operation t from the line, and wakes the next operation.
func (s *line) dequeue(t *turn) {
	*s = without(*s, t)
	s.wakeFirst()
	t.by.endCall()
}

func (s line) isFirst(t *turn) bool { return s[0] == t }

func (s line) wakeFirst() {
	if len(s) > 0 {
		s[0].wake()
	}
}

func (s line) wakeAll() {
	for _, t := range s {
		t.wake()
	}
}

// wait suspends the caller until t is woken. A wake-up may be spurious, so the caller must check its condition again.
func (t *turn) wait() { t.by.wait(t) }

func (t *turn) wake() { t.by.wake(t) }

// tasks is the entry of tasks and callbacks.
type tasks struct{ w *World }

func (e tasks) endCall()       {}
func (e tasks) post(f func())  { e.do(f) }
func (e tasks) wake(t *turn)   { e.w.by.resume(t) }
func (e tasks) resume(t *turn) { t.r.Resume(struct{}{}, nil) }
func (e tasks) late(*int)      {}
func (e tasks) leave()         {}
func (e tasks) brief(f func()) { e.do(f) }
func (e tasks) refused() error { return ErrForeign }

func (e tasks) do(f func()) {
	if e.beginCall() {
		f()
	}
}

// beginCall begins a call by one of the World's own tasks or callbacks, and reports whether the caller is on the World. If the calling task was
// killed, or if the run has failed, this task ends.
func (e tasks) beginCall() bool {
	w := e.w
	if !w.own() {
		return false
	}
	if t := w.current; t != nil {
		if w.over && !w.tearingDown {
			runtime.Goexit() // otherwise the task may retry forever without waiting
		}
		t.ExitIfKilled()
	}
	return true
}

func (e tasks) wait(t *turn) {
	e.w.still = e.w.o.Preempt
	_, _ = suspend.Suspend(context.Background(), func(r suspend.Resumer[struct{}]) (struct{}, bool) {
		t.r = r
		return struct{}{}, false
	})
}

// beginCall locks g.mu until endCall. Once the run is over, guests may not call.
func (g *guests) beginCall() bool {
	if g.again(); g.over {
		g.endCall()
		return false
	}
	return true
}

func (g *guests) refused() error { return net.ErrClosed }
func (g *guests) leave()         { runtime.Goexit() }

// again locks g.mu at the beginning of a call, or after a wait.
func (g *guests) again() {
	g.mu.Lock()
	g.w.by, g.w.defers = g, true
	g.calls++
	if g.random != nil { // seeded again, because the runtime also draws for its caches, which outlive a run
		g.random.SeedCheap(draws.Mix(g.w.o.Seed, g.calls))
	}
}

// endCall unlocks g.mu at the end of a call, or before a wait. If the call has changed connections, the World learns of it.
func (g *guests) endCall() {
	if len(g.changed) > g.told {
		g.told = len(g.changed)
		g.w.called.Store(true)
		g.touch()
	}
	g.w.by, g.w.defers = tasks{g.w}, false
	g.mu.Unlock()
}

// await waits, within a call, until it can receive from the given channel, or until ctx is cancelled. It reports whether the run continues.
func (g *guests) await(ctx context.Context, woke <-chan struct{}) bool {
	g.endCall()
	defer g.again()
	select {
	case <-woke:
	case <-ctx.Done():
	case <-g.done:
		return false
	}
	return true
}

func (g *guests) wait(t *turn) {
	if t.woke == nil {
		t.woke = make(chan struct{}, 1)
	}
	if !g.await(context.Background(), t.woke) {
		runtime.Goexit()
	}
}

func (g *guests) wake(t *turn) {
	select {
	case t.woke <- struct{}{}:
	default:
	}
	g.woken = true
}

// resume queues the wake-up, because the guest holds the lock that Resume takes.
func (g *guests) resume(t *turn) { g.ask(nil, t.wake) }

func (g *guests) do(f func()) {
	g.call(context.Background(), nil, func(done func()) { f(); done() })
}

func (g *guests) brief(f func()) {
	g.attempt(context.Background(), nil, func(done func()) { f(); done() })
}

func (g *guests) post(f func()) {
	if g.beginCall() {
		defer g.endCall()
		g.ask(nil, f)
	}
}

// late ends the guest after 2000 such calls of the guests of its node.
func (g *guests) late(count *int) {
	if *count++; *count > 2000 {
		runtime.Goexit()
	}
}

// call calls f on the World, and waits until f has called its argument. If ctx is cancelled first, g.call ends the sleeper's sleep, so that
// the World notices the cancellation. If the run is over, call ends the guest.
func (g *guests) call(ctx context.Context, h *host, f func(done func())) {
	if !g.attempt(ctx, h, f) {
		runtime.Goexit()
	}
}

// attempt is call for a guest that may hold locks. It returns false if the run is over.
func (g *guests) attempt(ctx context.Context, h *host, f func(done func())) (lives bool) {
	if !g.beginCall() {
		return false
	}
	defer g.endCall()
	woke, returns := make(chan struct{}), false
	g.ask(h, func() {
		f(func() {
			returns, g.woken = true, true
			close(woke)
		})
	})
	lives = g.await(ctx, woke)
	if lives && !returns {
		g.touch()
		lives = g.await(context.Background(), woke)
	}
	return lives
}

// fromOutside implements World.fromOutside for guests. It must not end the guest, which may hold locks of package suspend.
func (g *guests) fromOutside(r ready) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.over:
		return errOver
	case r.host == nil && r.task == nil: // only tasks may make this call
		err := fmt.Errorf("simulation: %w: a guest called a method for tasks: use the network of its Host\n%s", ErrForeign, debug.Stack())
		g.ask(nil, func() { g.w.fail(err) })
		return ErrForeign
	}
	g.ask(r.host, func() { r.letIn(g.w) })
	return nil
}

package eventloop

import (
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A reactor runs tasks, polls for descriptors and timers in between, and sleeps in the poller when nothing is
// runnable. It is what suspend.Here returns in its tasks.
//
// Other goroutines make tasks runnable through the inbox of the core, which also says whether the reactor sleeps. A
// timer that becomes the first one reaches it by poke. Debt: a push or a poke that takes the word "asleep" out of the
// inbox must be followed by one poller.wake.
type reactor struct {
	loop   *Loop
	core   *runner.Runner
	poller polling
	timers timers
	ring   atomicx.Pointer[ring] // stays nil before the first OpenFile, and if the system refuses
	ended  bool                  // under loop.rings.mu

	share  share // the core's
	stalls *coro.Stalls
}

func newReactor(l *Loop) (*reactor, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	r := &reactor{loop: l, poller: p}
	r.timers.init(r)
	r.core = runner.New(r, p.wake, l.opts.OnPanic)
	r.core.InOrder = true
	r.watch()
	return r, nil
}

// watch sets the watch for steps that last. In a bubble there is none.
func (r *reactor) watch() {
	o := &r.loop.opts
	r.stalls = coro.WatchStalls(o.StallAfter, o.OnStall)
	if o.HandOver > 0 {
		after := func() time.Duration { return o.HandOver }
		if r.stalls = r.stalls.Lasting(after, r.handOver); r.stalls != nil {
			r.core.Lease(o.HandOver, coro.WatchStrays(o.StallAfter, o.OnStall))
			r.stalls.Answers(r.answer)
		}
	}
	r.core.Watch(r.stalls)
}

// handOver is called by the watch while a step lasts. It takes the reactor from the step, for a fresh goroutine.
func (r *reactor) handOver(time.Duration) (enough bool) {
	if !r.core.Take() { // the task makes something runnable just now, or its step has ended
		return false
	}
	go r.run()
	return false
}

// answer is called in a turn, now and then. A turn that has lasted for HandOver is ended: none of its steps has to have lasted for so long.
func (r *reactor) answer(now time.Time) {
	if lasted := now.Sub(r.loop.base) - time.Duration(r.share.began); lasted > r.loop.opts.HandOver {
		r.core.Overdue(now, lasted)
	}
}

// discard undoes newReactor.
func (r *reactor) discard() {
	r.endRing()
	r.poller.close()
	r.poller.release()
}

// run is the reactor's goroutine, until the reactor has ended or another goroutine has been given it.
func (r *reactor) run() {
	r.core.Own()
	for r.look() {
		if !r.core.RunTurn() {
			return
		}
	}
	r.stalls.Stop()
	r.core.Release()
	r.discard()
	r.loop.ended()
}

// look comes before a turn. It polls, and sleeps if there is nothing to do. It reports whether there will be another
// turn.
func (r *reactor) look() bool {
	polled := r.poll()
	if r.resumeRested() || polled || !r.core.Empty() { // tasks that the poll has woken go first
		return true
	}
	if r.core.Done() {
		return false
	}
	r.sleep()
	return true
}

// poll lets descriptors, files and timers have their turn, and reports whether there was anything.
func (r *reactor) poll() bool {
	some := r.poller.poll()
	if some {
		r.poller.dispatch()
	}
	some = r.ring.Load().turn() || some
	return r.runTimers() || some
}

// sleep waits for the first event, timer, completion or push, unless there is work already.
func (r *reactor) sleep() {
	r.poller.hold() // a wake needs it, so it is held before any push can wake
	if !r.core.Sleep() {
		r.poller.release()
		return
	}
	// All are looked at after Sleep: a change after this pokes.
	if d := r.timers.until(); d != 0 && !r.core.Done() && r.ring.Load().rests() {
		r.poller.wait(d)
	}
	if r.core.Rouse() {
		r.poller.release()
	}
	// Awake: a resume from here on needs no wake.
	r.poller.dispatch()
	r.runTimers()
}

// poke ends a sleep that began before it.
func (r *reactor) poke() {
	if r.core.Asleep() && r.core.Rouse() {
		r.poller.wake()
	}
}

// runTimers begins a turn: it runs the timers that are due, and reports whether there were any.
func (r *reactor) runTimers() bool {
	now := r.loop.now()
	r.share.began = now
	return r.timers.run(now)
}

// close begins the end: the goroutine ends when all accepted work has ended.
func (r *reactor) close() {
	r.core.Close()
	r.timers.close()
	r.poller.closeAll()
	r.poke()
}

// Go runs f as a task of this reactor.
func (r *reactor) Go(f func()) error { return r.core.Go(f) }

// Execute runs f as a callback of this reactor.
func (r *reactor) Execute(f func()) error { return r.core.Execute(f) }

// Hold implements suspend.Holder.
func (r *reactor) Hold() (release func(), err error) { return r.core.Hold() }

// AfterFunc runs f as a callback of this reactor once d has passed.
func (r *reactor) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return r.timers.afterFunc(d, f)
}

// Unwrap returns the Loop: a reactor offers what that does.
func (r *reactor) Unwrap() suspend.Spawner { return r.loop }

// Now returns the time by the clock of the timers.
func (r *reactor) Now() time.Time { return r.loop.Now() }

// Same reports whether s is the loop of the reactor, or a reactor of it.
func (r *reactor) Same(s suspend.Spawner) bool { return r.loop.Same(s) }

// Block runs f on a separate goroutine.
func (r *reactor) Block(f func()) error { return r.loop.Block(f) }

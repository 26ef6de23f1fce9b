package eventloop

import (
	"time"

	"github.com/braidgo/braid/adapters/internal/runner"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/suspend"
)

// A reactor runs tasks. Between turns, it polls descriptors and runs timers. When nothing is runnable, it sleeps in its
// poller. In a task of the reactor, suspend.Here returns the reactor.
//
// Other goroutines make tasks runnable through the inbox of the core. The mark "asleep" in the inbox means that the
// reactor sleeps. If a new timer is due before all others, the method poke ends the sleep. Debt: a push or a poke that
// takes the mark "asleep" out of the inbox must call poller.wake once.
type reactor struct {
	loop   *Loop
	core   *runner.Runner
	poller polling
	timers timers
	ring   atomicx.Pointer[ring] // the pointer is nil before the first OpenFile, and if the system refuses io_uring
	ended  bool                  // guarded by loop.rings.mu
	idle   bool                  // all work has ended, and loop.busy no longer counts the reactor; only run uses the field

	share  share // only the owner of core may access the share
	stalls *coro.Stalls
}

func newReactor(l *Loop) (*reactor, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	r := &reactor{loop: l, poller: p}
	r.timers.init(r)
	r.core = runner.New(r, p.wake, l.opts.OnPanic, errLoopClosed)
	r.core.InOrder = true
	r.watchSteps()
	return r, nil
}

// watchSteps creates r.stalls, which watches for steps that last too long. In a testing/synctest bubble nothing is
// watched.
func (r *reactor) watchSteps() {
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

// handOver takes the reactor from a step that lasts too long, and starts a new goroutine that runs the reactor. This
// method is called by r.stalls.
func (r *reactor) handOver(time.Duration) (enough bool) {
	if !r.core.Take() { // the task is making something runnable, or its step has ended
		return false
	}
	go r.run()
	return false
}

// answer ends a turn that has lasted for HandOver, even if no step of the turn has lasted that long. This method is
// called by the reactor between two steps, on request of r.stalls.
func (r *reactor) answer(now time.Time) {
	if lasted := now.Sub(r.loop.base) - time.Duration(r.share.began); lasted > r.loop.opts.HandOver {
		r.core.Overdue(now, lasted)
	}
}

// discard releases all resources that the reactor has acquired.
func (r *reactor) discard() {
	r.endRing()
	r.poller.close()
	r.poller.dropRef()
}

// run is the body of the reactor's goroutine. run returns when the reactor has ended, or when another goroutine has
// taken over the reactor.
func (r *reactor) run() {
	r.core.Own()
	for r.pollOrSleep() {
		if !r.core.RunTurn() {
			return
		}
	}
	r.stalls.Stop()
	r.timers.close() // after a Shutdown, timers are set and descriptors are open
	r.poller.closeAll()
	r.timers.end()
	r.core.Release()
	r.discard()
	r.loop.ended()
}

// pollOrSleep is called before each turn. pollOrSleep polls, and sleeps if nothing is runnable. pollOrSleep returns
// false if the reactor has ended.
func (r *reactor) pollOrSleep() bool {
	polled := r.poll()
	if r.resumeRested() || polled || !r.core.Empty() { // the resumed task runs after the tasks that the poll has woken
		return true
	}
	if r.mayEnd() {
		return false
	}
	r.sleep()
	return true
}

// mayEnd reports whether the reactor may end, because the work of all reactors has ended. It may not end before the others, because
// their tasks may use its connections and timers after a Shutdown.
func (r *reactor) mayEnd() bool {
	if !r.core.Done() {
		return false
	}
	l := r.loop
	if !r.idle {
		r.idle = true
		if l.busy.Add(-1) == 0 { // before the pokes; pairs with the load below
			for _, other := range l.reactors {
				other.poke()
			}
		}
	}
	return l.busy.Load() == 0
}

// poll handles the pending events of descriptors, files and timers, and reports whether there were any.
func (r *reactor) poll() bool {
	some := r.poller.poll()
	if some {
		r.poller.dispatch()
	}
	some = r.ring.Load().submitAndReap() || some
	return r.runTimers() || some
}

// sleep waits for the first event, timer, completion or push. If a task is runnable already, sleep returns immediately.
func (r *reactor) sleep() {
	r.poller.hold() // a wake releases this reference, so it is acquired before any push can call wake
	if !r.core.Sleep() {
		r.poller.dropRef()
		return
	}
	// The timers, the core and the ring are checked after Sleep, because whoever changes them later calls poke.
	if d := r.timers.until(); d != 0 && !r.mayEnd() && r.ring.Load().rests() {
		r.poller.wait(d)
	}
	if r.core.Rouse() {
		r.poller.dropRef()
	}
	// The reactor is awake by now, so a task can be resumed without a call of poller.wake.
	r.poller.dispatch()
	r.runTimers()
}

// poke wakes the reactor if the reactor sleeps.
func (r *reactor) poke() {
	if r.core.Asleep() && r.core.Rouse() {
		r.poller.wake()
	}
}

// runTimers records the beginning of a turn, runs the timers that are due, and reports whether there were any.
func (r *reactor) runTimers() bool {
	now := r.loop.now()
	r.share.began = now
	return r.timers.run(now)
}

// refuseWork makes the reactor refuse new work, and closes its listeners. The reactor ends when all accepted work of the Loop has
// ended.
func (r *reactor) refuseWork() {
	r.core.Close()
	r.poller.closeListeners()
	r.poke()
}

// close makes the reactor refuse new work, and closes its descriptors. The reactor ends when all accepted work has
// ended.
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

// Hold implements sched.Holder.
func (r *reactor) Hold() (release func(), err error) { return r.core.Hold() }

// AfterFunc runs f as a callback of this reactor after d has passed.
func (r *reactor) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return r.timers.afterFunc(d, f)
}

// Unwrap returns the Loop, because a reactor offers all that its Loop offers.
func (r *reactor) Unwrap() suspend.Spawner { return r.loop }

// Same reports whether s is the reactor's Loop or a reactor of that Loop.
func (r *reactor) Same(s suspend.Spawner) bool { return r.loop.Same(s) }

// Block runs f on a separate goroutine.
func (r *reactor) Block(f func()) error { return r.loop.Block(f) }

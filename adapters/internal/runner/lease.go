package runner

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
)

// A lease allows another goroutine to take the Runner away from a step that lasts too long, and to run it from then on.
// The field holder is the goroutine id of the coroutine whose step holds the Runner, or 0. -R> is the goroutine that
// the Runner runs on, -T> the task, -M> a monitor: the watch of the scheduler, which calls Take for a step that lasts too long, and then
// starts a goroutine that runs the Runner.
//
//	0  -R> g   a step of the coroutine with goroutine g begins
//	g  -R> 0   the step has ended
//	g  -T> 0   the task enters the core, to make something runnable
//	0  -T> g   and leaves it
//	g  -M> 0   the Runner is taken, and another goroutine runs it from now on
//
// Invariant: while holder is 0, exactly one goroutine is in the core: the Runner's own, the task's or the monitor's. A
// task that finds another value is outside, and so is its step: the Runner runs without it, and it continues alone, as
// a task of another scheduler would, until its step ends. Debt: if a step ends outside, the goroutine that resumed the
// task must post the task to the inbox. That goroutine is the last to touch the task.
//
// Park and Yield do not enter the core. The goroutine that resumed the task handles them, in the core or through the
// post. No task helps, because a helper that waits for a stuck step would be stuck, too.
type lease struct {
	holder atomicx.Int64

	// The six fields below, up to start, belong to the core.
	claimed int64 // the goroutine id of the task that is in the core, or 0
	task    *Task // the task whose step holds the Runner, or held it last
	caution caution
	dead    []*Task // coroutines whose tasks have ended, see bury
	strays  *coro.Strays
	start   func(step func()) // starts a goroutine that calls step

	outside   atomicx.Int64 // counts the tasks outside; read by other goroutines, as is the field below
	handOvers atomicx.Uint64
}

// Lease allows r to be taken from a step that has lasted for the duration after. The argument strays, which may be nil,
// watches the steps outside. Lease must be called before the first Run. From then on the scheduler calls RunTurn.
func (r *Runner) Lease(after time.Duration, strays *coro.Strays) {
	r.lease = &lease{caution: newCaution(after), strays: strays, start: func(step func()) { go step() }}
}

// claim enters the core for the task on goroutine id. It returns false if that task is outside.
func (l *lease) claim(id int64) (ok bool) {
	if ok = l.holder.CompareAndSwap(id, 0); ok {
		l.claimed = id
	}
	return ok
}

// exit leaves the core if a call of claim has entered it.
func (l *lease) exit() {
	if id := l.claimed; id != 0 {
		l.claimed = 0
		l.holder.Store(id)
	}
}

// RunTurn is RunSome for a Runner that may have a lease. It reports whether the caller still has the Runner.
func (r *Runner) RunTurn() (mine bool) {
	l := r.lease
	if l == nil {
		r.RunSome()
		return true
	}
	r.budget = publishing
	l.caution.expire()
	for it := r.Next(); it != nil; it = r.Next() {
		t := r.resumed(it)
		r.stalls.Begin() // Begin may call Overdue
		if l.caution.carries(t) {
			r.carry(t)
		} else if !r.lend(t) {
			return false
		}
		if r.budget--; r.budget <= 0 {
			break
		}
	}
	return true
}

// lend runs a step of t, and reports whether the caller still has the Runner.
func (r *Runner) lend(t *Task) (mine bool) {
	l, id := r.lease, t.ID()
	l.task = t
	l.holder.Store(id)
	t.Next()()
	if !l.holder.CompareAndSwap(id, 0) {
		r.send(&t.Item)
		return false
	}
	r.drain()
	r.afterStep(t)
	r.bury()
	return true
}

// Overdue ends a turn that has lasted for long although none of its steps has. The caller must be in the core. If there
// were few steps, the next steps run outside for a while. Otherwise tasks whose native waits are each too short for a
// hand-over would together hold the Runner. Many short steps are normal in a busy reactor. Steps outside would only
// slow it down.
func (r *Runner) Overdue(now time.Time, lasted time.Duration) {
	steps := publishing - r.budget
	r.EndTurn()
	if c := &r.lease.caution; !c.careful() && lasted > time.Duration(steps)*c.shortly {
		c.beginPeriod(now)
	}
}

// Take takes r from its current step, and reports whether it did. If so, the caller is in the core, and must start a
// goroutine that calls Own and RunTurn.
func (r *Runner) Take() bool {
	l := r.lease
	id := l.holder.Load()
	if id == 0 || !l.holder.CompareAndSwap(id, 0) {
		return false
	}
	l.handOvers.Add(1)
	l.caution.taken(l.task)
	r.goesOut(l.task, l.caution.after)
	return true
}

// carry runs a step of t outside, on another goroutine.
func (r *Runner) carry(t *Task) {
	r.goesOut(t, 0)
	slowly := r.lease.caution.slowly
	r.lease.start(func() {
		began := time.Now()
		t.Next()()
		t.slow = time.Since(began) > slowly
		r.send(&t.Item)
	})
}

func (r *Runner) goesOut(t *Task, held time.Duration) {
	r.lease.outside.Add(1)
	t.WatchedBy(nil)
	r.lease.strays.Out(t.ID(), held)
}

// tookBack takes back a task that was outside and has been posted. The caller must be in the core.
func (r *Runner) tookBack(t *Task) {
	l := r.lease
	l.outside.Add(-1)
	l.strays.Back(t.ID())
	t.WatchedBy(r.stalls)
	l.caution.proved(t)
	r.afterStep(t)
}

// afterStep updates the state of t after a step. The caller must be in the core.
func (r *Runner) afterStep(t *Task) {
	switch t.Why() {
	case coro.Parked:
		r.suspended++
		if t.Mark == woken {
			t.Mark = active
			r.list.append(&t.Item)
		} else {
			t.Mark = parked
		}
	case coro.Yielded:
		r.list.append(&t.Item)
	default:
		l := r.lease
		t.outside, t.period = 0, l.caution.period-1 // the next task of the coroutine has to prove itself
		l.dead = append(l.dead, t)
		if l.claimed == 0 {
			r.bury()
		}
	}
}

// bury calls r.ended for each coroutine in r.lease.dead. Only the Runner's own goroutine may call bury. A task that has
// locked its thread would end the process if it switched to another coroutine in order to end that coroutine.
func (r *Runner) bury() {
	if l := r.lease; l != nil {
		for i, t := range l.dead {
			l.dead[i] = nil
			r.ended(t)
		}
		l.dead = l.dead[:0]
	}
}

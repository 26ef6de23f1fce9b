package runner

import (
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
)

// A lease lets a Runner be taken away from a step that lasts. The Runner is an object, and any goroutine can go on with it. The
// word holder says whose step holds it: the goroutine of that coroutine, or 0. -R> is the goroutine that the Runner runs on, -T> the task,
// -M> a monitor.
//
//	0  -R> g   a step of the coroutine with goroutine g begins
//	g  -R> 0   the step has ended
//	g  -T> 0   the task enters the core, to make something runnable
//	0  -T> g   and leaves it
//	g  -M> 0   the Runner is taken, and another goroutine runs it from now on
//
// Invariant: at 0 one goroutine is in the core: the Runner's own, the task's, or the monitor's. A task that finds
// another value is outside. It goes on alone, as a task of another scheduler would, up to the end of its step. Debt:
// the goroutine that has resumed a task posts it to the inbox if the step has ended outside. It is the last that
// touches the task.
//
// Park and Yield do not enter. The goroutine that has resumed the task settles them, in the core or by the post. No task helps: a helper that
// waits for a step that is stuck would be stuck with it.
type lease struct {
	holder atomicx.Int64

	// The rest is the core's.
	claimed int64 // the goroutine of the task that is in the core, 0 if it is another goroutine
	task    *Task // its step holds the Runner, or held it last
	caution caution
	dead    []*Task // have ended outside, see bury
	strays  *coro.Strays
	start   func(step func()) // starts a goroutine

	outside   atomicx.Int64 // tasks; read by others, as is handOvers
	handOvers atomicx.Uint64
}

// Lease lets r be taken from a step that has lasted for after. strays, which may be nil, watches the steps outside.
// Lease is called before the first Run. From then on the scheduler calls RunTurn.
func (r *Runner) Lease(after time.Duration, strays *coro.Strays) {
	r.lease = &lease{caution: newCaution(after), strays: strays, start: func(step func()) { go step() }}
}

// claim is the entrance of the task on goroutine id.
func (l *lease) claim(id int64) (ok bool) {
	if ok = l.holder.CompareAndSwap(id, 0); ok {
		l.claimed = id
	}
	return ok
}

// exit leaves the core, if a claim has entered it.
func (l *lease) exit() {
	if id := l.claimed; id != 0 {
		l.claimed = 0
		l.holder.Store(id)
	}
}

// RunTurn is RunSome for a Runner that may be leased. It reports whether the Runner is still the caller's.
func (r *Runner) RunTurn() (mine bool) {
	l := r.lease
	if l == nil {
		r.RunSome()
		return true
	}
	r.budget = publishing
	l.caution.turn()
	for it := r.Next(); it != nil; it = r.Next() {
		t := r.resumed(it)
		r.stalls.Begin() // may call Overdue
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

// lend makes a step of t, and reports whether the Runner is still the caller's.
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
	r.settle(t)
	r.bury()
	return true
}

// Overdue is called in the core when the turn has lasted for long, by steps none of which did. It ends the turn. If the
// steps were few, the next steps are made outside for a while: otherwise tasks that each wait natively for less than it
// takes to lose the Runner would hold it together. Many short steps are the work of a busy reactor, which being careful
// would only slow down.
func (r *Runner) Overdue(now time.Time, lasted time.Duration) {
	steps := publishing - r.budget
	r.EndTurn()
	if c := &r.lease.caution; !c.careful() && lasted > time.Duration(steps)*c.shortly {
		c.begin(now)
	}
}

// Take takes r from the step that it is in, and reports whether it has. The caller is in the core then, and starts a goroutine that calls
// Own and RunTurn.
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

// carry makes a step of t outside.
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

// tookBack is called in the core when a task that was outside has been posted.
func (r *Runner) tookBack(t *Task) {
	l := r.lease
	l.outside.Add(-1)
	l.strays.Back(t.ID())
	t.WatchedBy(r.stalls)
	l.caution.proved(t)
	r.settle(t)
}

// settle deals with a step that has ended.
func (r *Runner) settle(t *Task) {
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

// bury deals with the coroutines of the dead. Only the Runner's own goroutine may call it: a task that has locked its
// thread would end the process if it switched to a coroutine to end it.
func (r *Runner) bury() {
	if l := r.lease; l != nil {
		for i, t := range l.dead {
			l.dead[i] = nil
			r.ended(t)
		}
		l.dead = l.dead[:0]
	}
}

package coro

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A Runner is a scheduler that runs on one goroutine, less the two things in which such schedulers differ:
// the order in which they run what is runnable, and how they sleep. Everything that becomes runnable, from
// wherever it comes, passes through one inbox, so that it keeps its order without anybody asking who is asking.
type Runner struct {
	inbox   Inbox
	live    atomicx.Int64 // accepted and not ended; less closedBase once closed
	self    suspend.Spawner
	InOrder bool        // Items run in the order of Next; set before the first Run
	doze    func() bool // not nil: a task that stands in may have the scheduler sleep; false: something else is to be done
	wake    func()      // rouses the scheduler from the sleep that began with Sleep
	onPanic func(any, []byte)
	stalls  *Stalls

	// The rest belongs to the scheduler's goroutine.
	first   *Item   // runnable, in order
	idle    []*Task // coroutines without a task
	calls   *Item   // the callback that the coroutine for callbacks begins with
	budget  int     // steps that are left before the scheduler looks at anything else
	stoodIn bool    // a task runs the others on its own goroutine

	steps            int
	wakes, suspended uint64 // counted here, and shown by publish
	shownWakes       atomicx.Uint64
	shown            atomicx.Uint64 // suspended, doubled; odd: and it runs
	shownAt          int            // steps
}

const (
	closedBase = -1 << 62
	maxIdle    = 1024 // coroutines kept for reuse
	publishing = 64   // steps at most between two looks at anything else
)

// NewRunner makes the core of self. wake obeys Unpark's contract. onPanic may be nil: the process then ends.
func NewRunner(self suspend.Spawner, wake func(), onPanic func(any, []byte)) *Runner {
	return &Runner{self: self, wake: wake, onPanic: onPanic}
}

// Go has f run as a task.
func (r *Runner) Go(f func()) error { return r.submit(nil, f) }

// Execute has f run as a callback.
func (r *Runner) Execute(f func()) error { return r.submit(callback, f) }

func (r *Runner) submit(task *Task, f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	for { // counted before it is published
		n := r.live.Load()
		if n < 0 {
			return suspend.ErrClosed
		}
		if r.live.CompareAndSwap(n, n+1) {
			break
		}
	}
	r.push(newItem(task, f))
	return nil
}

func (r *Runner) push(it *Item) {
	if r.inbox.Push(it) {
		r.wake()
	}
}

// Close refuses new work from now on, and reports whether it was open before.
func (r *Runner) Close() bool {
	for {
		n := r.live.Load()
		if n < 0 {
			return false
		}
		if r.live.CompareAndSwap(n, n+closedBase) {
			return true
		}
	}
}

// CloseIfDone closes if nothing is left to end, and reports whether it did.
func (r *Runner) CloseIfDone() bool {
	return r.live.Load() == 0 && r.live.CompareAndSwap(0, closedBase)
}

// Done reports whether the Runner is closed and everything has ended.
func (r *Runner) Done() bool { return r.live.Load() == closedBase }

// Ready implements Host.
func (r *Runner) Ready(t *Task) { r.push(&t.Item) }

// Spawner implements Host.
func (r *Runner) Spawner() suspend.Spawner { return r.self }

// Panicked implements Host.
func (r *Runner) Panicked(value any, stack []byte) {
	if r.onPanic == nil {
		Crash(value, stack)
	}
	r.onPanic(value, stack)
}

// Next takes the runnable Item that has waited longest, nil if there is none.
func (r *Runner) Next() *Item {
	it := r.first
	if it == nil {
		it = r.inbox.Take()
	}
	if it != nil {
		r.first, it.next = it.next, nil
	}
	return it
}

// Sleep reports whether nothing has become runnable since the last Next, which returned nil; then whoever makes
// something runnable calls wake, once.
func (r *Runner) Sleep() bool {
	r.shownWakes.Store(r.wakes)
	r.shown.Store(2 * r.suspended)
	return r.inbox.Sleep() // if so, the scheduler may be running again, elsewhere
}

// Asleep reports whether that call of wake is still to come.
func (r *Runner) Asleep() bool { return r.inbox.Asleep() }

// Rouse ends the sleep from within; false says that wake is being called.
func (r *Runner) Rouse() bool { return r.inbox.Rouse() }

// Run runs it, up to where it ends, suspends or yields. It is called on the scheduler's goroutine.
func (r *Runner) Run(it *Item) {
	r.budget = 1
	r.drive(it, nil)
}

// RunSome runs some of what is runnable, in order, and reports whether there was anything.
func (r *Runner) RunSome() bool {
	it := r.Next()
	if it == nil {
		return false
	}
	r.budget = publishing
	r.drive(it, nil)
	return true
}

// drive runs it and what comes after it in order, as far as the budget goes. It is the loop of the scheduler, and one
// function for the sake of speed: after a switch the processor predicts no return correctly, so there are few.
//
// With a task, drive is called by that task, which is parked or queued, on the task's own goroutine; it stands in
// for the scheduler until its turn has come, and reports whether it has. Then it goes on without a switch, and two
// tasks that wake each other take two switches for a round and not four. When the budget is spent, the task has to
// switch to the scheduler's goroutine after all, which has other duties as well.
func (r *Runner) drive(it *Item, self *Task) (turn bool) {
	var t *Task
	defer func() {
		if t != nil && t.why == Exited { // and its private panic comes out of next
			_ = recover()
			r.ended(t)
			r.stalls.end()
		}
		if self != nil {
			r.stoodIn = false
			if r.stalls != nil {
				r.stalls.begin(self)
			}
		}
	}()
	if self != nil {
		r.stoodIn = true
		r.stalls.end()
	}
	for {
		if it == nil {
			if it = r.Next(); it == nil {
				if self == nil || r.doze == nil || !r.doze() {
					break
				}
				r.budget = publishing
				continue
			}
		}
		if t = it.task; t == nil || t == callback {
			if self != nil && len(r.idle) == 0 { // coroutines are made on the scheduler's goroutine only
				it.next, r.first = r.first, it
				break
			}
			t = r.begin(it)
		} else if t.why == Parked {
			r.wakes++
			r.suspended--
		}
		if t == self {
			r.budget--
			return true
		}
		if r.stalls != nil {
			r.stalls.begin(t)
		}
		t.next()
		switch {
		case t.departed:
			t.departed = false
		case t.why == Ended:
			r.ended(t)
		case t.why == Yielded:
			r.Ready(t)
		case !t.commit():
			r.suspended++ // and woken by now
			r.Ready(t)
		default:
			r.suspended++
		}
		if r.stalls != nil {
			r.stalls.end()
		}
		if r.steps++; r.steps-r.shownAt >= publishing {
			r.publish()
		}
		if r.budget--; r.budget <= 0 {
			break
		}
		it = nil
	}
	t = nil
	return false
}

// standIn reports whether a task that parks can run others meanwhile, or sleep until there are others. Only the one that the scheduler's goroutine
// has resumed can; those that it resumes in turn switch back to it.
func (r *Runner) standIn() bool {
	return r.InOrder && !r.stoodIn && r.budget > 1 && (r.doze != nil || !r.Empty())
}

// Empty reports whether nothing is runnable.
func (r *Runner) Empty() bool { return r.first == nil && r.inbox.Empty() }

// begin puts a new task, or callbacks, on a coroutine.
func (r *Runner) begin(it *Item) (t *Task) {
	if n := len(r.idle); n > 0 {
		t, r.idle[n-1] = r.idle[n-1], nil
		r.idle = r.idle[:n-1]
	} else {
		t = New(r)
	}
	if t.calls = it.task == callback; t.calls {
		r.calls = it
		t.Start(r.runCalls)
	} else {
		t.Start(it.take())
	}
	return t
}

// ended deals with a coroutine whose task has ended.
func (r *Runner) ended(t *Task) {
	if !t.calls {
		r.live.Add(-1)
	}
	if t.why == Exited {
		return // and the coroutine with it
	}
	if len(r.idle) < maxIdle {
		r.idle = append(r.idle, t)
	} else {
		t.Stop()
	}
}

// runCalls runs callbacks, as many as come one after another, on a coroutine: it stands what a callback does
// to the goroutine that it runs on, and they share the cost of the switch.
func (r *Runner) runCalls() {
	suspend.Bind(nil, func() {
		it := r.calls
		r.calls = nil
		for it != nil {
			r.call(it.take())
			if it = r.first; it != nil && it.task == callback {
				r.first = it.next
			} else {
				return
			}
		}
	})
}

func (r *Runner) call(f func()) {
	defer r.live.Add(-1)
	f()
}

// nextNew takes the Item that is next in order if it is a task to begin: the coroutine of one that has ended begins it,
// without the two switches by way of whoever drives.
func (r *Runner) nextNew() (f func()) {
	if !r.InOrder || r.budget <= 1 {
		return nil
	}
	if r.first == nil {
		r.first = r.inbox.Take()
	}
	it := r.first
	if it == nil || it.task != nil {
		return nil
	}
	r.first = it.next
	r.live.Add(-1)
	r.steps++
	r.budget--
	return it.take()
}

// Release stops the coroutines that are kept for reuse.
func (r *Runner) Release() {
	for _, t := range r.idle {
		t.Stop()
	}
	r.idle = nil
	r.publish()
	r.shown.Store(2 * r.suspended)
}

func (r *Runner) publish() {
	r.shownAt = r.steps
	r.shownWakes.Store(r.wakes)
	r.shown.Store(2*r.suspended + 1)
}

// Stats may be asked for from any goroutine. All but Live is a few steps old.
func (r *Runner) Stats() suspend.Stats {
	shown := r.shown.Load()
	s := suspend.Stats{Live: r.live.Load(), Suspended: int64(shown / 2), Wakes: r.shownWakes.Load()}
	if s.Live < 0 {
		s.Live -= closedBase
	}
	s.Suspended = min(s.Suspended, s.Live)
	if shown%2 != 0 && s.Suspended < s.Live {
		s.Running = 1
	}
	return s
}

// Watch has stalls watch the scheduler. It is called before the first Run.
func (r *Runner) Watch(stalls *Stalls) { r.stalls = stalls }

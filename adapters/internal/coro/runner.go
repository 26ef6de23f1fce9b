package coro

import (
	"sync/atomic"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/suspend"
)

// A Runner is a scheduler that runs on one goroutine, less the two things in which such schedulers differ:
// the order in which they run what is runnable, and how they sleep.
//
// What becomes runnable goes to the end of one list. Who makes it runnable on the Runner itself, one of its tasks, puts
// it there; whoever else leaves it in the inbox, which is emptied into the list before anything is put there and
// whenever the list is empty. So what has been made runnable before is run before, and neither starves the other.
type Runner struct {
	inbox   Inbox
	live    atomicx.Int64 // accepted and not ended; less closedBase once closed
	owner   atomicx.Int64 // the goroutine that it runs on, 0 if that is not always the same
	self    suspend.Spawner
	InOrder bool        // Items run in the order of Next; set before the first Run
	doze    func() Next // not nil: has a task that stands in sleep for the scheduler; nil: something else is to be done
	wake    func()      // rouses the scheduler from the sleep that began with Sleep
	onPanic func(any, []byte)
	stalls  *Stalls

	// Goroutines of tasks that have been found here. Such a one runs only when the Runner has switched to it, whatever is bound to
	// it then, and no other ever has its identity: so it need not be looked for again. The Runner's own is not among them, since
	// that goes its ways when the Runner has ended.
	known [64]atomic.Int64

	// The rest belongs to the scheduler's goroutine, or to the task that it has switched to.
	first, last *Item   // runnable, in order; last means nothing if first is nil
	idle        []*Task // coroutines without a task
	busy        int     // those with one
	free        *Item   // to be used again, so many of them
	freed       int
	calls       *Item // the callback that the coroutine for callbacks begins with
	budget      int   // steps that are left before the scheduler looks at anything else
	unknown     int   // times that here had to look
	standing    *Task // the task that runs the others on its own goroutine, if one does
	running     *Task // that it has switched to, nil if it sleeps

	steps            int
	wakes, suspended uint64 // counted here, and shown by publish
	shownWakes       atomicx.Uint64
	shown            atomicx.Uint64 // suspended, doubled; odd: and it runs
	shownAt          int            // steps
}

const (
	closedBase = -1 << 62
	alwaysKept = 1024 // coroutines without a task
	maxFree    = 256  // Items
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
	if r.here() {
		it := r.free
		if it != nil {
			r.free, it.next = it.next, nil
			r.freed--
		} else {
			it = idleItems.Get().(*Item)
		}
		it.task, it.f = task, f
		r.put(it)
	} else {
		it := idleItems.Get().(*Item)
		it.task, it.f = task, f
		r.send(it)
	}
	return nil
}

// take empties it, which is not a task's, and keeps it for the next.
func (r *Runner) take(it *Item) (f func()) {
	f = it.f
	if r.freed == maxFree {
		it.give()
		return f
	}
	*it = Item{next: r.free}
	r.free = it
	r.freed++
	return f
}

// here reports whether the caller is on the Runner: on the goroutine of one of its tasks, which is then the one that runs,
// or on its own. Then nobody else is.
func (r *Runner) here() bool {
	id := gid.Get()
	known := &r.known[uint64(id)%uint64(len(r.known))]
	if known.Load() == id {
		return true
	}
	if t, ok := suspend.Current().(*Task); ok && t.runner == r && t.gid.Load() == id {
		if r.unknown++; r.unknown%8 == 0 { // a store is dear, and where there are too many, of little use
			known.Store(id)
		}
		return true
	}
	owner := r.owner.Load()
	return owner == id && owner != 0
}

// send makes it runnable, from elsewhere.
func (r *Runner) send(it *Item) {
	if r.inbox.Push(it) {
		r.wake()
	}
}

// unpark is Unpark for t. From elsewhere it is posted, once until the Runner has seen it: by then what it is for can be
// seen as well.
func (r *Runner) unpark(t *Task) {
	if r.here() {
		r.drain()
		r.rouse(t)
	} else if t.posted.CompareAndSwap(false, true) {
		r.send(&t.post)
	}
}

// rouse makes t runnable if it is parked, and otherwise leaves it the permit.
func (r *Runner) rouse(t *Task) {
	if t.own == parked {
		t.own = active
		r.append(&t.Item)
	} else {
		t.own = woken
	}
}

// put makes it runnable. It is called on the Runner.
func (r *Runner) put(it *Item) {
	r.drain()
	r.append(it)
}

func (r *Runner) append(it *Item) {
	it.next = nil
	if r.first == nil {
		r.first = it
	} else {
		r.last.next = it
	}
	r.last = it
}

// drain empties the inbox into the list.
func (r *Runner) drain() {
	for it := r.inbox.Take(); it != nil; {
		next := it.next // posted again, it may be in the next list
		if t := it.task; t != nil && t != callback {
			t.posted.Store(false)
			r.rouse(t)
		} else {
			r.append(it)
		}
		it = next
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
func (r *Runner) Ready(t *Task) { r.put(&t.Item) }

// Spawner implements Host.
func (r *Runner) Spawner() suspend.Spawner { return r.self }

// Panicked implements Host.
func (r *Runner) Panicked(value any, stack []byte) {
	if r.onPanic == nil {
		Crash(value, stack)
	}
	r.onPanic(value, stack)
}

// Own says that the Runner runs on the calling goroutine, until Release.
func (r *Runner) Own() {
	r.owner.Store(gid.Get())
}

// Next takes the runnable Item that has waited longest, nil if there is none.
func (r *Runner) Next() *Item {
	if r.first == nil {
		r.drain()
	}
	it := r.first
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
	r.stalls.end()
	return r.inbox.Sleep() // if so, the scheduler may be running again, elsewhere
}

// Asleep reports whether that call of wake is still to come.
func (r *Runner) Asleep() bool { return r.inbox.Asleep() }

// Rouse ends the sleep from within; false says that wake is being called.
func (r *Runner) Rouse() bool { return r.inbox.Rouse() }

// Empty reports whether nothing is runnable.
func (r *Runner) Empty() bool { return r.first == nil && r.inbox.Empty() }

// Release stops the coroutines that are kept for reuse.
func (r *Runner) Release() {
	r.keep(0)
	r.idle = nil
	r.owner.Store(0)
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
func (r *Runner) Watch(stalls *Stalls) {
	r.stalls = stalls
	if stalls != nil {
		stalls.others = func() int64 { return r.Stats().Live - 1 }
	}
}

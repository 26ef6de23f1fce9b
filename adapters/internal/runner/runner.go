// Package runner is the core of the schedulers that run on one goroutine: fifo, random, a reactor of the event loop, and
// package callback.
package runner

import (
	"sync/atomic"

	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/suspend"
)

// A Runner is a scheduler that runs on one goroutine, less the two things in which such schedulers differ:
// the order in which they run Items, and how they sleep.
//
// A runnable Item goes to the end of one list. Its own tasks put it there. Other goroutines leave it in the inbox,
// which is emptied into the list before anything is put there and whenever the list is empty. So Items run in the order
// in which they became runnable, and neither source starves the other.
//
// Everything but the atomics is the core. It belongs to the goroutine that the Runner runs on, or to the task that it has switched to. A
// running task touches it by these entrances only: submit, unpark, park, yield, back, nextOf and Enter. If the Runner can be taken from a
// task, see lease, each of them has to claim it.
type Runner struct {
	inbox   Inbox
	live    closable.Counter
	owner   atomicx.Int64 // its goroutine, 0 if the Runner runs on several
	calling atomicx.Int64 // the goroutine of the coroutine that runs callbacks, 0 if none does
	self    suspend.Spawner
	InOrder bool                // Items run in the order of Next; set before the first Run
	Preempt func() (yield bool) // each task calls it, see suspend.Preemptible; may be nil; set like InOrder
	waker   waker
	foreign func() // see OnForeign; may be nil
	onPanic func(any, []byte)
	stalls  *coro.Stalls
	release atomicx.Pointer[func()] // shared by all Holds; the first makes it
	lease   *lease                  // set before the first Run; a nil lease means that the Runner is never taken from a step

	// Goroutines of tasks that were found to be this Runner's. Such a goroutine runs only while the Runner has switched
	// to it, and ids are never used again, so a hit needs no lookup. A coroutine that leaves the Runner is taken out: it
	// may be another Runner's next. The Runner's own goroutine is not among them: it goes its ways when the Runner has ended.
	ownGoroutines [64]atomic.Int64
	misses        int // misses of ownGoroutines

	list   list // runnable Items, in order
	free   freeItems
	room   [8]*Task
	all    []*Task // the coroutines that run tasks, or are idle
	idle   []*Task // coroutines without a task
	busy   int     // coroutines with a task
	shares tri     // whether it takes idle coroutines from kept and gives them back; undecided at first in a Driven
	callFn func()  // runCalls, once it is needed
	help   help

	budget int // steps that are left before the scheduler looks at anything else
	stats
}

// A tri is an answer.
type tri uint8

const (
	no tri = iota
	yes
	unknown
)

const (
	alwaysKept = 1024 // coroutines without a task
	publishing = 64   // steps at most between two looks at anything else
)

// A waker ends the sleep that began with Sleep. Its method obeys Unpark's contract.
type waker interface{ wake() }

type wakeFunc func()

func (f wakeFunc) wake() { f() }

// New makes the core of self. wake ends the sleep that began with Sleep, and obeys Unpark's contract. onPanic may be nil:
// the process then ends.
func New(self suspend.Spawner, wake func(), onPanic func(any, []byte)) *Runner {
	r := new(Runner)
	r.init(self, wakeFunc(wake), onPanic)
	return r
}

// init allocates nothing: a Run may be as short as a request of a server.
func (r *Runner) init(self suspend.Spawner, w waker, onPanic func(any, []byte)) {
	r.self, r.waker, r.onPanic = self, w, onPanic
	half := len(r.room) / 2
	r.all, r.idle = r.room[:0:half], r.room[half:half]
}

// Go runs f as a task, under the profiler labels of the caller.
func (r *Runner) Go(f func()) error {
	if labels.Some() {
		f = labels.Inherit(f)
	}
	return r.submit(nil, f)
}

// Execute runs f as a callback.
func (r *Runner) Execute(f func()) error { return r.submit(callback, f) }

// Due is Execute from within: f is accepted after Close, too, unless everything has ended. It is called in the core.
func (r *Runner) Due(f func()) {
	if r.live.Again() {
		it := r.free.get()
		it.task, it.f = callback, f
		r.put(it)
	}
}

func (r *Runner) submit(task *Task, f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	if !r.live.Enter() { // counted before it is published
		return suspend.ErrClosed
	}
	r.publishNew(task, f)
	return nil
}

// Hold implements suspend.Holder.
func (r *Runner) Hold() (release func(), err error) {
	if !r.live.Enter() {
		return nil, suspend.ErrClosed
	}
	r.held.Add(1)
	made := r.release.Load()
	if made == nil {
		end := r.endHold
		made = &end
		r.release.Store(made)
	}
	return *made, nil
}

func (r *Runner) endHold() {
	r.held.Add(-1)
	if t, ok := suspend.Current().(*Task); ok && t.runner.Load() == r && t.ID() == gid.Get() {
		r.live.Leave() // the Runner looks when the task has ended
		return
	}
	r.publishNew(callback, func() {}) // its end takes back the count of Hold
}

// publishNew makes a new Item runnable, which is counted.
func (r *Runner) publishNew(task *Task, f func()) {
	if r.enter() {
		it := r.free.get()
		it.task, it.f = task, f
		r.put(it)
		r.exit()
	} else {
		it := idleItems.Get().(*Item)
		it.task, it.f = task, f
		r.send(it)
	}
}

// enter reports whether the caller is on the Runner: on the goroutine of the task that runs, or on the Runner's own.
// Then no other goroutine is in the core, until exit.
//
// On its own goroutine a Runner that sleeps is in the Park of its parent, which is foreign code. A Park that resumes a
// task of the Runner counts as elsewhere: an Item in the list would wake nobody.
func (r *Runner) enter() bool {
	id := gid.Quick()
	if id == 0 {
		id = gid.Get()
	}
	own := r.own(id)
	if own.Load() == id {
		return true
	}
	if l := r.lease; l != nil {
		return r.owner.Load() == id || l.claim(id)
	}
	if t, ok := suspend.Current().(*Task); ok && t.runner.Load() == r && t.ID() == id {
		if r.misses++; r.misses%8 == 0 { // a store is dear, and of little use where there are too many
			own.Store(id)
		}
		return true
	}
	owner := r.owner.Load()
	return owner == id && owner != 0 && !r.inbox.Asleep() || r.calling.Load() == id
}

// exit ends what enter, or claim, began.
func (r *Runner) exit() {
	if l := r.lease; l != nil {
		l.exit()
	}
}

// claim is enter for a coroutine of the Runner that runs.
func (r *Runner) claim() bool { return r.lease == nil || r.lease.claim(gid.Get()) }

// own is the place of a goroutine in ownGoroutines.
func (r *Runner) own(id int64) *atomic.Int64 {
	return &r.ownGoroutines[uint64(id)%uint64(len(r.ownGoroutines))]
}

// send makes it runnable, from elsewhere. It reports whether the Runner has not ended.
func (r *Runner) send(it *Item) bool {
	if r.foreign != nil && !r.inbox.Closed() {
		r.foreign()
	}
	wake, ok := r.inbox.Push(it)
	if wake {
		r.waker.wake()
	}
	return ok
}

// unpark is Unpark for t. From another goroutine it posts t. One post covers all Unparks until the Runner drains it:
// their causes are visible by then.
//
// The coroutine of t may have moved to another Runner since r was read, if this Unpark is late and its task has ended.
// Then r is closed, and refuses the post. But an Unpark for the new task may have found t posted before the refusal and
// relied on that, so the post must be made again, with the new Runner.
func (r *Runner) unpark(t *Task) {
	if r.enter() {
		r.drain()
		r.rouse(t)
		r.exit()
		return
	}
	for t.posted.CompareAndSwap(false, true) {
		if r.send(&t.post) {
			return
		}
		t.posted.Store(false)
		now := t.runner.Load()
		if now == r {
			return
		}
		r = now
	}
}

// rouse makes t runnable if it is parked, and otherwise leaves it the permit.
func (r *Runner) rouse(t *Task) {
	if t.Mark == parked {
		t.Mark = active
		r.list.append(&t.Item)
	} else {
		t.Mark = woken
	}
}

// put makes it runnable. It is called on the Runner.
func (r *Runner) put(it *Item) {
	r.drain()
	r.list.append(it)
}

// drain empties the inbox into the list.
func (r *Runner) drain() {
	if r.inbox.touched() {
		r.drainAll()
	}
}

func (r *Runner) drainAll() {
	for it := r.inbox.Take(); it != nil; {
		next := it.next // posted again, it may be in the next list
		if it.isNew() {
			r.list.append(it)
		} else if t := it.task; it == &t.Item {
			r.tookBack(t)
		} else {
			t.posted.Store(false)
			r.rouse(t)
		}
		it = next
	}
}

// Close refuses new work from now on, and reports whether it was open before.
func (r *Runner) Close() bool {
	first, _ := r.live.Close()
	return first
}

// CloseIfDone closes if nothing is left to end, and reports whether it did.
func (r *Runner) CloseIfDone() bool { return r.live.CloseIfDone() }

// Done reports whether the Runner is closed and everything has ended. A coroutine that has just run a callback outside is not counted by
// live.
func (r *Runner) Done() bool {
	return r.live.Done() && (r.lease == nil || r.lease.outside.Load() == 0)
}

func (r *Runner) panicked(value any, stack []byte) {
	if r.onPanic == nil {
		coro.Crash(value, stack)
	}
	r.onPanic(value, stack)
}

// Own says that the Runner runs on the calling goroutine, until Release.
func (r *Runner) Own() {
	r.owner.Store(gid.Get())
	r.bury()
}

// Next takes the runnable Item that has waited longest, nil if there is none.
func (r *Runner) Next() *Item {
	if r.list.first == nil {
		r.drain()
	}
	return r.list.take()
}

// Sleep reports whether nothing has become runnable since the last Next, which returned nil. Then the goroutine that
// makes something runnable calls wake, once.
func (r *Runner) Sleep() bool {
	r.stats.sleeps()
	r.stalls.End()
	r.stalls.Slept()
	return r.inbox.Sleep() // true means that the scheduler may be running again, elsewhere
}

// Asleep reports whether that call of wake is still to come.
func (r *Runner) Asleep() bool { return r.inbox.Asleep() }

// Rouse ends the sleep from within; false says that wake is being called.
func (r *Runner) Rouse() bool { return r.inbox.Rouse() }

// Empty reports whether nothing is runnable.
func (r *Runner) Empty() bool { return r.list.first == nil && r.inbox.Empty() }

// Release ends a Runner that is Done: its coroutines stop, and no Unpark reaches it any more.
func (r *Runner) Release() {
	for it := r.inbox.Close(); it != nil; { // late Unparks
		next := it.next
		it.task.posted.Store(false)
		it = next
	}
	r.keep(0)
	r.idle = nil
	r.free.giveBack()
	r.owner.Store(0)
	r.stats.publish()
	r.stats.sleeps()
}

// Stats may be asked for from any goroutine. All but Live is a few steps old.
func (r *Runner) Stats() suspend.Stats {
	all := r.stats.read(r.live.Live())
	if l := r.lease; l != nil {
		all.HandOvers, all.Outside = l.handOvers.Load(), max(0, l.outside.Load())
		all.Running = min(all.Running+all.Outside, all.Live-all.Suspended)
	}
	return all
}

// Watch lets stalls watch the scheduler. It is called before the first Run.
func (r *Runner) Watch(stalls *coro.Stalls) {
	if r.stalls = stalls; stalls != nil {
		stalls.Others(func() int64 { return r.Stats().Live - 1 })
		stalls.Rows(func() int { return r.steps }, r.list.len)
	}
}

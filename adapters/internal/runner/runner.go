// Package runner is the core of the schedulers that run on one goroutine: fifo, random, the reactors of the event loop,
// and package callback.
package runner

import (
	"sync/atomic"

	"github.com/braidgo/braid/adapters/internal/closable"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/gid"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A Runner is the common part of the schedulers that run on one goroutine. Such schedulers differ in only two things:
// the order in which they run Items, and the way they sleep.
//
// A runnable Item is appended to one list. The Runner's own tasks append Items directly. Other goroutines push Items
// into the inbox. The Runner moves the contents of the inbox to the list before each append, and whenever the list is
// empty. So Items run in the order in which they became runnable, and neither source starves the other.
//
// All fields except the atomics form the core. The core belongs to the goroutine that the Runner runs on, or to the
// task that this goroutine has switched to. A running task touches the core only through submit, unpark, park, yield,
// back, nextOf and Enter. If the Runner can be taken from a task (see lease), each of these functions must claim the
// Runner first.
type Runner struct {
	inbox   Inbox
	live    closable.Counter
	owner   atomicx.Int64 // the id of the Runner's goroutine, or 0 if the Runner runs on several goroutines
	calling atomicx.Int64 // the goroutine id of the coroutine that is running callbacks, or 0
	self    suspend.Spawner
	InOrder bool                // whether Items run in the order of Next; set before the first Run
	Preempt func() (yield bool) // called by each task, see suspend.Preemptible; may be nil; set before the first Run
	waker   waker
	onPanic func(any, []byte)
	closed  error // the error of refused work
	stalls  *coro.Stalls
	release atomicx.Pointer[func()] // the release function that all Holds share; the first Hold makes it
	lease   *lease                  // set before the first Run; a nil lease means that the Runner is never taken from a step

	// ownGoroutines caches the ids of goroutines whose tasks were found to belong to this Runner. Such a goroutine runs
	// only while the Runner has switched to it, and ids are never reused, so a hit needs no lookup. A coroutine that
	// leaves the Runner is removed from the cache, because another Runner may use it next. The Runner's own goroutine
	// is not cached, because it may outlive the Runner.
	ownGoroutines [64]atomic.Int64
	misses        int // counts the misses of ownGoroutines

	list   list // runnable Items, in order
	free   freeItems
	room   [8]*Task
	all    []*Task // all coroutines, with a task or idle
	idle   []*Task // the coroutines without a task
	busy   int     // counts the coroutines with a task
	shares tri     // whether the Runner shares idle coroutines through the cache kept; unknown at first in a Driven
	callFn func()  // the method value r.runCalls, made when it is first needed
	help   help

	budget int // steps left until control returns to the scheduler
	stats
}

// A tri is a boolean that may be unknown.
type tri uint8

const (
	no tri = iota
	yes
	unknown
)

const (
	alwaysKept = 1024 // the number of idle coroutines that are always kept
	publishing = 64   // the maximum number of steps until control returns to the scheduler or stats are published
)

// A waker ends the sleep that Sleep began. Its method wake obeys the contract of suspend.Task's Unpark.
type waker interface{ wake() }

type wakeFunc func()

func (f wakeFunc) wake() { f() }

// New returns a Runner that is the core of self. The function wake ends the sleep that Sleep began, and obeys the
// contract of suspend.Task's Unpark. If onPanic is nil, a panic in a task ends the process. The argument closed is the
// error with which Go, Execute and Hold refuse work after Close.
func New(self suspend.Spawner, wake func(), onPanic func(any, []byte), closed error) *Runner {
	r := new(Runner)
	r.init(self, wakeFunc(wake), onPanic, closed)
	return r
}

// init does not allocate, because a Run may be as short as a request to a server.
func (r *Runner) init(self suspend.Spawner, w waker, onPanic func(any, []byte), closed error) {
	r.self, r.waker, r.onPanic, r.closed = self, w, onPanic, closed
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

// Due is like Execute, but accepts f even after Close, unless everything has ended. It reports whether it has accepted f.
// The caller must be in the core.
func (r *Runner) Due(f func()) bool {
	if !r.live.Again() {
		return false
	}
	it := r.free.get()
	it.task, it.f = callback, f
	r.put(it)
	return true
}

func (r *Runner) submit(task *Task, f func()) error {
	if f == nil {
		panic("suspend: nil function")
	}
	if !r.live.Enter() { // the Item is counted before it is published
		return r.closed
	}
	r.publishNew(task, f)
	return nil
}

// Hold implements sched.Holder.
func (r *Runner) Hold() (release func(), err error) {
	if !r.live.Enter() {
		return nil, r.closed
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
		r.live.Leave() // the scheduler checks for remaining work when the task ends
		return
	}
	r.publishNew(callback, func() {}) // the end of this callback removes the Hold from the count
}

// publishNew makes a new Item runnable. The caller has already counted it in r.live.
func (r *Runner) publishNew(task *Task, f func()) {
	if r.enterCore() {
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

// enterCore reports whether the caller is on the Runner: on the goroutine of the running task, or on the Runner's own
// goroutine. If so, no other goroutine is in the core until the caller calls exit.
//
// While the Runner sleeps, its own goroutine is inside its parent's Park, which is foreign code. A call from there
// counts as a call from another goroutine, because appending an Item to the list would not end the sleep.
func (r *Runner) enterCore() bool {
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
		if r.misses++; r.misses%8 == 0 { // stores are expensive, and of little use with too many goroutines
			own.Store(id)
		}
		return true
	}
	owner := r.owner.Load()
	return owner == id && owner != 0 && !r.inbox.Asleep() || r.calling.Load() == id
}

// exit leaves the core after a successful call of enterCore or claim.
func (r *Runner) exit() {
	if l := r.lease; l != nil {
		l.exit()
	}
}

// claim is like enterCore, for a running coroutine of the Runner.
func (r *Runner) claim() bool { return r.lease == nil || r.lease.claim(gid.Get()) }

// own returns the entry for goroutine id in ownGoroutines.
func (r *Runner) own(id int64) *atomic.Int64 {
	return &r.ownGoroutines[uint64(id)%uint64(len(r.ownGoroutines))]
}

// send makes an Item runnable from another goroutine. It returns false if the Runner has ended.
func (r *Runner) send(it *Item) bool {
	wake, ok := r.inbox.Push(it)
	if wake {
		r.waker.wake()
	}
	return ok
}

// unpark implements Unpark for t. On another goroutine it posts t to the inbox. One post covers all Unparks until the
// Runner drains the inbox, because everything that their callers have done is visible by then.
//
// If this Unpark is late, the task may have ended, and the coroutine of t may have moved to another Runner since r was
// read. Then r is closed and refuses the post. But an Unpark for the new task may already have found that t is posted,
// and relied on that post. So unpark must repeat the post with the new Runner.
func (r *Runner) unpark(t *Task) {
	if r.enterCore() {
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

// rouse makes t runnable if it is parked, and otherwise gives it the permit.
func (r *Runner) rouse(t *Task) {
	if t.Mark == parked {
		t.Mark = active
		r.list.append(&t.Item)
	} else {
		t.Mark = woken
	}
}

// put makes an Item runnable. The caller must be in the core.
func (r *Runner) put(it *Item) {
	r.drain()
	r.list.append(it)
}

// drain moves the contents of the inbox to the list.
func (r *Runner) drain() {
	if r.inbox.touched() {
		r.drainAll()
	}
}

func (r *Runner) drainAll() {
	for it := r.inbox.Take(); it != nil; {
		next := it.next // read first, because a task that is posted again may be in another list
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

// Close makes r refuse new work, and reports whether r was open before.
func (r *Runner) Close() bool {
	first, _ := r.live.Close()
	return first
}

// CloseIfDone closes r if no task, callback or Hold is left, and reports whether it did.
func (r *Runner) CloseIfDone() bool { return r.live.CloseIfDone() }

// Done reports whether r is closed and all work has ended. The counter r.live no longer counts a coroutine
// that has run a callback while another goroutine ran r (see lease), so Done also checks lease.outside.
func (r *Runner) Done() bool {
	return r.live.Done() && (r.lease == nil || r.lease.outside.Load() == 0)
}

func (r *Runner) panicked(value any, stack []byte) {
	if r.onPanic == nil {
		coro.Crash(value, stack)
	}
	r.onPanic(value, stack)
}

// Own makes the calling goroutine the goroutine of r, until Release.
func (r *Runner) Own() {
	r.owner.Store(gid.Get())
	r.bury()
}

// Next removes and returns the runnable Item that has waited longest, or returns nil if there is none.
func (r *Runner) Next() *Item {
	if r.list.first == nil {
		r.drain()
	}
	return r.list.pop()
}

// Sleep reports whether nothing has become runnable since the last Next, which returned nil. If so, the goroutine that
// next makes an Item runnable calls wake, once.
func (r *Runner) Sleep() bool {
	r.stats.sleeps()
	r.stalls.End()
	r.stalls.Slept()
	return r.inbox.Sleep() // if this is true, the scheduler may already be running on another goroutine
}

// Asleep reports whether r still sleeps and the call of wake is yet to come.
func (r *Runner) Asleep() bool { return r.inbox.Asleep() }

// Rouse lets the scheduler end its own sleep. It returns false if another goroutine already calls wake.
func (r *Runner) Rouse() bool { return r.inbox.Rouse() }

// Empty reports whether no Item is runnable.
func (r *Runner) Empty() bool { return r.list.first == nil && r.inbox.Empty() }

// Release ends a Runner that is Done. Its idle coroutines stop or go to the cache, and later Unparks have no effect.
func (r *Runner) Release() {
	for it := r.inbox.Close(); it != nil; { // these are late Unparks
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

// Stats returns the statistics of r, from any goroutine. All counts except Live may be a few steps old.
func (r *Runner) Stats() sched.Stats {
	all := r.stats.read(r.live.Live())
	if l := r.lease; l != nil {
		all.HandOvers, all.Outside = l.handOvers.Load(), max(0, l.outside.Load())
		all.Running = min(all.Running+all.Outside, all.Live-all.Suspended)
	}
	return all
}

// Watch makes stalls watch the scheduler. It must be called before the first Run.
func (r *Runner) Watch(stalls *coro.Stalls) {
	if r.stalls = stalls; stalls != nil {
		stalls.Others(func() int64 { return r.Stats().Live - 1 })
		stalls.Rows((*queue)(r))
	}
}

// queue is the coro.Queue of a Runner.
type queue Runner

func (q *queue) Passed() int  { return q.steps }
func (q *queue) Waiting() int { return q.list.len() }

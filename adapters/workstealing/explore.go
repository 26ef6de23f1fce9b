//go:build explore

package workstealing

import (
	"context"
	"math"
	"slices"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/suspend"
)

// This file gives the model checker parts of a pool without its goroutines.

// A Deque is a worker's deque whose forks are known by their numbers.
type Deque struct {
	d     deque
	forks []*fork
}

// NewDeque returns a Deque whose ring has the given size, a power of two. Its top and bottom begin at the given index.
func NewDeque(size int, at uint64) *Deque {
	d := new(Deque)
	d.d.init(at)
	r := make(ring, size)
	d.d.ring.Store(&r)
	return d
}

// Make makes n more forks, with the next n numbers. A number may be used only after its fork was made.
func (d *Deque) Make(n int) {
	for range n {
		d.forks = append(d.forks, new(fork))
	}
}

func (d *Deque) number(f *fork) int {
	for i, x := range d.forks {
		if x == f {
			return i
		}
	}
	return -1
}

// Push pushes fork n. Push, Pop, PopIf and Steal call the deque's methods of the same names; the number -1 means no
// fork.
func (d *Deque) Push(n int) { d.d.push(d.forks[n]) }

// Pop may be called only by the owner.
func (d *Deque) Pop() int { return d.number(d.d.pop()) }

// PopIf may be called only by the owner.
func (d *Deque) PopIf(n int) bool { return d.d.popIf(d.forks[n]) }

// Steal may be called by any task.
func (d *Deque) Steal() (n int, retry bool) {
	f, retry := d.d.steal()
	return d.number(f), retry
}

// roomFor returns the room for entries in a worker's queue. It does not depend on the clock here.
func roomFor(int, int64) int { return queueSize }

// A Parking is a pool whose workers run on goroutines of the caller. A task runs on its worker's goroutine, which
// blocks while the task waits.
type Parking struct {
	p     *Pool
	tasks []Task // the task of each worker
}

// NewParking returns a Parking with the given number of workers.
func NewParking(workers int) *Parking { return newParking(workers, false) }

// NewQueueing returns a Parking whose workers have queues. There is one shard, because the ids of goroutines differ from run to run.
func NewQueueing(workers int) *Parking { return newParking(workers, true) }

func newParking(workers int, queues bool) *Parking {
	p := newPool(Options{Workers: workers, MaxWorkers: workers + 1, StallAfter: -1}, queues)
	p.goroutines.Store(int64(workers) + 1)
	p.blocking = blocking.New(blocking.Limits{Width: 1, Max: 1, Closed: errClosed}, p.exit)
	p.shards = p.shards[:min(1, len(p.shards))]
	k := &Parking{p: p}
	all := make([]*worker, workers)
	for i := range all {
		all[i] = newWorker(p, i)
		all[i].picks = math.MaxInt // turns must not depend on the clock
		all[i].steps = math.MinInt
		all[i].room = queueSize
	}
	p.workers.Store(&all)
	for i := range all {
		k.tasks = append(k.tasks, k.Task(i))
	}
	return k
}

// Pool returns the pool of k.
func (k *Parking) Pool() *Pool { return k.p }

// Worker runs the i'th worker until that worker retires or the pool has ended.
func (k *Parking) Worker(i int) {
	w := k.worker(i)
	defer k.p.exit()
	w.thread = suspend.Self()
	for !w.asked.Load() || !w.retires() {
		var e entry
		var ok bool
		if !w.woken {
			e, ok = w.pick()
		}
		if !ok {
			e, ok = w.search()
		}
		switch {
		case ok && e.f != nil:
			e.f()
			k.p.ended(w.part)
		case ok:
			e.fork.run()
		case !w.sleep():
			return
		}
	}
}

// Sleeper is like Worker, for a worker that has found no work and sleeps first.
func (k *Parking) Sleeper(i int) {
	w := k.worker(i)
	w.thread = suspend.Self()
	if !w.sleep() {
		k.p.exit()
		return
	}
	k.Worker(i)
}

func (k *Parking) worker(i int) *worker { return (*k.p.workers.Load())[i] }

// Join runs a and b as the function Join does, in the calling worker's task.
func (k *Parking) Join(a, b func()) { k.tasks[k.Here()].Join(a, b) }

// Here returns the index of the worker that runs the caller.
func (k *Parking) Here() int {
	for i, w := range *k.p.workers.Load() {
		if w.thread == suspend.Self() {
			return i
		}
	}
	panic("not on a worker")
}

// A Task is a task that runs on the goroutine of the caller.
type Task struct{ s *fiber }

// Task returns a Task on the i'th worker.
func (k *Parking) Task(i int) Task { return Task{&fiber{pool: k.p, worker: k.worker(i)}} }

// Join runs a and b as the function Join does, in t.
func (t Task) Join(a, b func()) {
	side := func(f func()) func(context.Context) (struct{}, error) {
		return func(context.Context) (struct{}, error) { f(); return struct{}{}, nil }
	}
	_, _, _ = joinOn(context.Background(), t.s, side(a), side(b))
}

// Move moves t to the worker with the given index.
func (t Task) Move(to int) { t.s.worker = (*t.s.pool.workers.Load())[to] }

// GiveWay makes t give way, and then resumes t on the worker with the given index, which may be the same worker.
func (t Task) GiveWay(to int) {
	s := t.s
	s.gave = true
	s.worker.leaves(s)
	t.Move(to)
	s.worker.restore(s)
}

// GiveWay makes the calling worker's task give way.
func (k *Parking) GiveWay() {
	i := k.Here()
	k.tasks[i].GiveWay(i)
}

// Give adds f to the queue of the fibers that have given way.
func (k *Parking) Give(f func()) {
	k.p.live.Enter(0)
	k.p.given.push(entry{f: f})
	k.p.announce()
}

// Local submits f as a task that the i'th worker runs. It reports whether the pool has accepted f.
func (k *Parking) Local(i int, f func()) bool {
	w := k.worker(i)
	if !k.p.live.Enter(w.part) {
		return false
	}
	if !w.takes(entry{f: f}) {
		k.p.injector.push(entry{f: f})
	}
	k.p.announce()
	return true
}

// Gather moves the shards to the injector, as any worker may.
func (k *Parking) Gather() { k.p.gather() }

// Spill moves the i'th worker's queue to the injector, as any worker may.
func (k *Parking) Spill(i int) { k.p.spill(&k.worker(i).queue) }

// Scrape pops and runs all forks in the i'th deque, as its owner does.
func (k *Parking) Scrape(i int) {
	for f := k.worker(i).forks.pop(); f != nil; f = k.worker(i).forks.pop() {
		if f.claim() {
			f.run()
		}
	}
}

// Steal makes the i'th worker steal a fork and run it.
func (k *Parking) Steal(i int) {
	if f := k.worker(i).steal(); f != nil {
		f.run()
	}
}

// A Queue is a worker's queue whose entries are functions.
type Queue struct{ q queue }

// NewQueue returns a Queue of the given size, a power of two.
func NewQueue(size int) *Queue {
	q := new(Queue)
	q.q.init(size)
	return q
}

// Push may be called only by the owner. It returns false if the queue is full.
func (q *Queue) Push(f func()) bool { return q.q.push(entry{f: f}) }

// Pop may be called by any task. It returns nil if the queue is empty.
func (q *Queue) Pop() func() { e, _ := q.q.pop(); return e.f }

// Empty may be called by any task.
func (q *Queue) Empty() bool { return q.q.empty() }

// An Injector is a pool's injector whose entries are functions.
type Injector struct{ in injector }

// Push may be called by any task.
func (in *Injector) Push(f func()) { in.in.push(entry{f: f}) }

// Pop may be called by any task. It returns nil if the injector is empty.
func (in *Injector) Pop() func() { e, _ := in.in.pop(); return e.f }

// PopNew may be called by any task. It returns nil if there is no function to begin.
func (in *Injector) PopNew() func() { e, _ := in.in.popNew(); return e.f }

// Shards are the shards of a pool whose entries are functions.
type Shards struct{ w *worker }

// NewShards returns n shards, a power of two.
func NewShards(n int) Shards {
	k := newParking(1, true)
	k.p.shards = make([]shard, n)
	return Shards{k.worker(0)}
}

// Push adds f to a shard, as a goroutine outside the pool does.
func (s Shards) Push(shard int, f func()) { s.w.pool.shards[shard].push(entry{f: f}) }

// Gather moves all functions to the injector, as any worker may.
func (s Shards) Gather() { s.w.pool.gather() }

// Pop takes a function from the injector, or else from the shards. It returns nil if it finds none. Only one task may call it.
func (s Shards) Pop() func() {
	e, ok := s.w.pool.injector.pop()
	if !ok {
		e, _ = s.w.takeOutside(false)
	}
	return e.f
}

// A Fiber is the state of a task that any worker may run.
type Fiber struct{ s *fiber }

// NewFiber returns a Fiber whose task is active. When the task becomes runnable again, Runnable finds it in the queue.
func (k *Parking) NewFiber() Fiber { return Fiber{&fiber{pool: k.p}} }

// Runnable takes the only fiber of the pool from the queue, and reports whether it was queued.
func (k *Parking) Runnable() bool {
	_, ok := k.p.injector.pop()
	if ok && k.p.injector.len() > 0 {
		panic("queued twice")
	}
	return ok
}

// Queue puts f into the queue.
func (f Fiber) Queue() { f.s.pool.enqueue(entry{fiber: f.s}) }

// Park prepares to park the task of f. It returns false if the task has a permit and continues instead.
func (f Fiber) Park() bool { return !f.s.permitted() }

// Commit parks the task of f, as a worker does after the switch. It returns false if the task is runnable instead.
func (f Fiber) Commit() bool { return f.s.commit() }

// Unpark unparks the task of f. It may be called from anywhere.
func (f Fiber) Unpark() { f.s.Unpark() }

// Look makes the pool grow as if the i'th worker were stuck in a step that waits natively.
func (k *Parking) Look(i int) {
	k.p.grow([]*worker{k.worker(i)})
}

// OnGrowth sets the function that runs each new worker. Its argument is the index of the worker.
func (k *Parking) OnGrowth(begin func(worker int)) {
	k.p.growth.start = func(w *worker) {
		w.picks, w.steps, w.room = math.MaxInt, math.MinInt, queueSize
		begin(slices.Index(*k.p.workers.Load(), w))
	}
}

// Left returns how many workers count as stuck, and how many goroutines have not ended.
func (k *Parking) Left() (stuck, goroutines int) {
	return int(k.p.growth.stuck.Load()), int(k.p.goroutines.Load())
}

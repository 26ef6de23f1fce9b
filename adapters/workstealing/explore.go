//go:build explore

package workstealing

import (
	"context"
	"math"
	"slices"

	"github.com/braidgo/braid/adapters/internal/blocking"
	"github.com/braidgo/braid/suspend"
)

// This file is for the model checker: parts of a pool without its goroutines.

// A Deque is a worker's deque, for numbers.
type Deque struct {
	d     deque
	forks []*fork
}

// NewDeque returns one whose ring has this size, a power of two, and whose first index is at.
func NewDeque(size int, at uint64) *Deque {
	d := new(Deque)
	d.d.init(at)
	r := make(ring, size)
	d.d.ring.Store(&r)
	return d
}

// Make makes the numbers below n, which are to be made before they are used.
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

// Push, Pop, PopIf and Steal do what a deque's methods do; -1 is no number.
func (d *Deque) Push(n int) { d.d.push(d.forks[n]) }

// Pop is for the owner.
func (d *Deque) Pop() int { return d.number(d.d.pop()) }

// PopIf is for the owner.
func (d *Deque) PopIf(n int) bool { return d.d.popIf(d.forks[n]) }

// Steal is for everybody.
func (d *Deque) Steal() (n int, retry bool) {
	f, retry := d.d.steal()
	return d.number(f), retry
}

// A Parking is a pool whose workers are the caller's. A task runs on its worker's goroutine, which waits when it waits.
type Parking struct {
	p     *Pool
	tasks []Task // the workers' tasks
}

// NewParking returns a Parking of this number of workers.
func NewParking(workers int) *Parking {
	p := &Pool{opts: Options{Workers: workers, MaxWorkers: workers + 1, StallAfter: -1}}
	p.goroutines.Store(int64(workers) + 1)
	p.blocking = blocking.New(blocking.Limits{Width: 1, Max: 1}, p.exit)
	k := &Parking{p: p}
	all := make([]*worker, workers)
	for i := range all {
		all[i] = newWorker(p, i)
		all[i].picks = math.MaxInt // no turn depends on the clock
	}
	p.workers.Store(&all)
	for i := range all {
		k.tasks = append(k.tasks, k.Task(i))
	}
	return k
}

// Pool returns it.
func (k *Parking) Pool() *Pool { return k.p }

// Worker is the i'th, until the pool is over.
func (k *Parking) Worker(i int) {
	w := k.worker(i)
	defer k.p.exit()
	w.thread = suspend.Self()
	for !w.asked.Load() || !w.retires() {
		var e entry
		var ok bool
		if !w.searching {
			e, ok = w.pick()
		}
		if !ok {
			e, ok = w.search()
		}
		switch {
		case ok && e.f != nil:
			e.f()
			k.p.ended()
		case ok:
			e.fork.run()
		case !w.sleep():
			return
		}
	}
}

// Sleeper is Worker for a worker that has found nothing.
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

// Join is called in a task of a worker.
func (k *Parking) Join(a, b func()) { k.tasks[k.here()].Join(a, b) }

func (k *Parking) here() int {
	for i, w := range *k.p.workers.Load() {
		if w.thread == suspend.Self() {
			return i
		}
	}
	panic("not on a worker")
}

// A Task is a task on the goroutine of the caller.
type Task struct{ s *fiber }

// Task returns a Task on the i'th worker.
func (k *Parking) Task(i int) Task { return Task{&fiber{pool: k.p, worker: k.worker(i)}} }

// Join has it join a and b.
func (t Task) Join(a, b func()) {
	side := func(f func()) func(context.Context) (struct{}, error) {
		return func(context.Context) (struct{}, error) { f(); return struct{}{}, nil }
	}
	_, _, _ = joinOn(context.Background(), t.s, side(a), side(b))
}

// Move has it go on on another worker.
func (t Task) Move(to int) { t.s.worker = (*t.s.pool.workers.Load())[to] }

// GiveWay has it give way, and go on on another worker, or on the same.
func (t Task) GiveWay(to int) {
	s := t.s
	s.gave = true
	s.worker.leaves(s)
	t.Move(to)
	s.worker.restore(s)
}

// GiveWay is called in a task of a worker.
func (k *Parking) GiveWay() {
	i := k.here()
	k.tasks[i].GiveWay(i)
}

// Give submits f to the queue of the fibers that have given way.
func (k *Parking) Give(f func()) {
	k.p.live.Enter()
	k.p.enqueue(&k.p.given, entry{f: f})
}

// Scrape runs the forks of the i'th deque, as its owner does.
func (k *Parking) Scrape(i int) {
	for f := k.worker(i).forks.pop(); f != nil; f = k.worker(i).forks.pop() {
		if f.claim() {
			f.run()
		}
	}
}

// Steal has the i'th worker steal a fork and run it.
func (k *Parking) Steal(i int) {
	if f := k.worker(i).steal(); f != nil {
		f.run()
	}
}

// An Injector is a pool's injector, for functions.
type Injector struct{ in injector }

// Push is for everybody.
func (in *Injector) Push(f func()) { in.in.push(entry{f: f}) }

// Pop is for everybody; nil if it is empty.
func (in *Injector) Pop() func() { e, _ := in.in.pop(); return e.f }

// PopNew is for everybody; nil if there is nothing to begin.
func (in *Injector) PopNew() func() { e, _ := in.in.popNew(); return e.f }

// A Fiber is the state of a task, which any worker runs.
type Fiber struct{ s *fiber }

// NewFiber returns a runnable Fiber. When it becomes runnable again, a worker of the pool finds it by Runnable.
func (k *Parking) NewFiber() Fiber { return Fiber{&fiber{pool: k.p}} }

// Runnable takes the only fiber of the pool, if it is queued.
func (k *Parking) Runnable() bool {
	_, ok := k.p.injector.pop()
	if ok && k.p.injector.len() > 0 {
		panic("queued twice")
	}
	return ok
}

// Queue queues it.
func (f Fiber) Queue() { f.s.pool.enqueue(&f.s.pool.injector, entry{fiber: f.s}) }

// Park is what its task does in order to park: false says that it has a permit and goes on.
func (f Fiber) Park() bool { return !f.s.permitted() }

// Commit is what its worker does when the task has parked: false says that it is runnable.
func (f Fiber) Commit() bool { return f.s.commit() }

// Unpark may be called from anywhere.
func (f Fiber) Unpark() { f.s.Unpark() }

// Look is a look of the watch of the i'th worker, whose step lasts and waits natively.
func (k *Parking) Look(i int) {
	k.p.grow([]*worker{k.worker(i)})
}

// OnGrowth sets the function that is called with each new worker, to run it.
func (k *Parking) OnGrowth(begin func(worker int)) {
	k.p.growth.start = func(w *worker) {
		w.picks = math.MaxInt
		begin(slices.Index(*k.p.workers.Load(), w))
	}
}

// Left returns how many workers are said to be stuck, and how many goroutines have not ended.
func (k *Parking) Left() (stuck, goroutines int) {
	return int(k.p.growth.stuck.Load()), int(k.p.goroutines.Load())
}

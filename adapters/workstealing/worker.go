package workstealing

import (
	"github.com/braidgo/braid/adapters/internal/yieldtimer"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/internal/splitmix"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// A worker is a goroutine that runs tasks.
//
// Workers sleep when there is no work. No worker may fall asleep while a new task is runnable, but a new task must not
// wake all workers. As in Go's own scheduler (see the head of runtime/proc.go), a producer wakes a worker only if none
// searches. A worker that has searched and found an entry wakes the next worker, if there are more entries. The steps
// are:
//
//	producer  1 publish the work  2 load wanted   3 if set, wake a worker, which then searches
//	worker    1 stop searching    2 announce sleep 3 check all queues again  4 park
//
// Invariant: while a task is runnable, at least one worker is awake and will check the queues. If a producer finds that
// wanted is false, some worker is awake or searching, and checks all queues again before it sleeps. Debt: the caller
// that removes a worker from Pool.idle must unpark it.
type worker struct {
	forks    deque
	pool     *Pool
	part     uint  // the part of pool.live that the tasks of w count in
	recycled *fork // forks that were taken back, for reuse
	turn     class // the queue that the worker picks from first
	length   int   // picks in this turn
	picks    int   // picks that are left in this turn
	turns    uint  // counts the turns that have begun
	first    bool  // forks are picked first in this turn
	waited   bool  // a task may be waiting for a fork of this worker
	queues   bool  // a copy of pool.queues
	room     int   // the number of entries that queue may hold
	steps    int   // picks since the last reading of the clock
	looks    uint  // counts the looks at the queues of other workers
	nextLook int64 // the time of the next look
	others   yieldtimer.Timer
	random   uint64
	fibers   []*fiber // idle fibers, for reuse; see keep
	needless int      // the minimum of len(fibers) since the last drop
	expects  bool     // a drop will come: there were fibers since the last one
	stalls   *coro.Stalls

	thread    suspend.Task // parks the worker
	asleep    bool         // the worker is in pool.idle; guarded by pool.mu
	searching bool         // counted in pool.searching; guarded by pool.mu, but the worker itself reads it without the lock
	stuck     bool         // counted in pool.growth.stuck; guarded by pool.mu
	dropping  bool         // w must call dropLocked; guarded by pool.mu
	asked     atomicx.Bool // makes w call retires between two steps; set under pool.mu; near searching, as each step reads both

	moved     atomicx.Int64 // the time of the last reading of the clock
	suspended atomicx.Int64 // the worker counts suspensions, wakes and steals; Stats adds them up
	wakes     atomicx.Uint64
	steals    atomicx.Uint64

	_     [64]byte
	queue queue // the entries that the steps of w make runnable; see takes
}

func newWorker(p *Pool, i int) *worker {
	w := &worker{pool: p, queues: p.queues, random: uint64(i)*splitmix.Golden + 1, thread: sched.NewThread()}
	w.forks.init(0)
	if p.queues {
		w.queue.init(queueSize)
		w.part = uint(1 + i%p.opts.Workers)
		w.looks = uint(i) // so that the workers do not all look at the same one
	}
	return w
}

// makeWorkers makes the first n workers.
func (p *Pool) makeWorkers(n int) []*worker {
	all := make([]*worker, n)
	for i := range all {
		all[i] = newWorker(p, i)
		all[i].watchSteps()
	}
	if all[0].stalls != nil { // one watch is enough, because the queue stops only while all workers are busy
		all[0].stalls.Rows(&p.injector)
	}
	p.workers.Store(&all)
	return all
}

// watchSteps sets up the watch that reports long steps and makes the pool grow.
func (w *worker) watchSteps() {
	o := &w.pool.opts
	w.stalls = coro.WatchWorker(o.StallAfter, o.OnStall)
	if o.GrowAfter > 0 {
		w.stalls = w.stalls.Lasting(w.pool.growAfter, w.lasts)
	}
}

func (w *worker) run() {
	defer w.pool.exit()
	defer w.stalls.Stop()
	for !w.asked.Load() || !w.retires() {
		var e entry
		var ok bool
		if !w.searching { // a worker that was woken to search skips pick
			e, ok = w.pick()
		}
		if !ok {
			e, ok = w.search()
		}
		if ok {
			w.do(e)
		} else if !w.sleep() {
			break
		} else if w.queues {
			w.woke()
		}
	}
	w.dropAll()
}

// takeFork claims the youngest fork of w.
func (w *worker) takeFork() (entry, bool) {
	for f := w.forks.pop(); f != nil; f = w.forks.pop() {
		if f.claim() {
			return entry{fork: f}, true
		}
	}
	w.first, w.waited = false, false
	return entry{}, false
}

// takeOldest claims the oldest fork of w, as a thief does. The youngest fork would belong to a task that has just had
// its turn.
func (w *worker) takeOldest() (entry, bool) {
	for f, retry := w.forks.steal(); f != nil || retry; f, retry = w.forks.steal() {
		if f != nil && f.claim() {
			return entry{fork: f}, true
		}
	}
	w.first, w.waited = false, false
	return entry{}, false
}

// steal claims a fork of another worker. It tries each worker once, beginning with a random worker.
func (w *worker) steal() *fork {
	all, first := w.victims()
	for i, from := range all {
		if from = all[(first+uint64(i))%uint64(len(all))]; from == w {
			continue
		}
		for f, retry := from.forks.steal(); f != nil || retry; f, retry = from.forks.steal() {
			if f != nil && f.claim() {
				w.steals.Add(1)
				return f
			}
		}
	}
	return nil
}

// victims returns all workers, and the index of a random one.
func (w *worker) victims() (all []*worker, first uint64) {
	w.random ^= w.random << 13
	w.random ^= w.random >> 7
	w.random ^= w.random << 17
	return *w.pool.workers.Load(), w.random
}

// search looks for an entry in all queues and deques, up to searchRounds times.
func (w *worker) search() (e entry, ok bool) {
	p := w.pool
	if !w.searching { // a worker that was woken to search is counted already
		p.mu.Lock()
		p.search(w, true)
		p.mu.Unlock()
	}
	for range searchRounds {
		if e, ok = p.injector.pop(); !ok {
			e, ok = w.takeGiven()
		}
		if !ok && w.queues {
			e, ok = w.stealQueued()
		}
		if !ok {
			e.fork = w.steal()
			ok = e.fork != nil
		}
		if ok {
			p.mu.Lock()
			p.search(w, false)
			p.mu.Unlock()
			// A producer that found w searching has woken no worker, because it relies on w.
			if p.wanted.Load() && p.visible() {
				p.wake()
			}
			return e, true
		}
	}
	return e, false
}

// sleep parks w until there may be work. It returns false when the pool has ended.
func (w *worker) sleep() bool {
	p := w.pool
	w.stalls.End()
	w.stalls.Slept()
	p.mu.Lock()
	if w.asked.Load() {
		p.mu.Unlock()
		return true
	}
	w.asleep = true
	p.idle = append(p.idle, w)
	p.search(w, false)
	p.mu.Unlock()
	// These loads follow the announcement. They pair with a producer's load of p.wanted, and with the store of p.over
	// in finish.
	if p.over.Load() {
		return false
	}
	if p.visible() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.asleep { // asleep is false if w was woken already
			p.rouse(w)
		}
		return true
	}
	for {
		w.thread.Park() // Park may return because of an earlier Unpark, made while w was awake
		p.mu.Lock()
		asleep := w.asleep
		p.mu.Unlock()
		if !asleep {
			return !p.over.Load()
		}
	}
}

// search sets w.searching to the argument on, and updates p.searching and p.wanted. Without the update, producers would
// fail to wake a worker. The caller must hold p.mu.
func (p *Pool) search(w *worker, on bool) {
	if w.searching != on {
		w.searching = on
		if on {
			p.searching++
		} else {
			p.searching--
		}
	}
	p.wanted.Store(len(p.idle) > 0 && p.searching == 0)
}

// wake wakes a sleeping worker, unless a worker searches already or all are awake.
func (p *Pool) wake() {
	p.mu.Lock()
	if len(p.idle) == 0 || p.searching > 0 {
		p.mu.Unlock()
		return
	}
	w := p.idle[len(p.idle)-1]
	p.rouse(w)
	p.mu.Unlock()
	w.thread.Unpark()
}

// rouse marks w, which sleeps, as awake and searching. The caller must hold p.mu.
func (p *Pool) rouse(w *worker) {
	i := len(p.idle) - 1 // w is usually the last
	for p.idle[i] != w {
		i--
	}
	p.idle = append(p.idle[:i], p.idle[i+1:]...)
	w.asleep = false
	p.search(w, true)
}

// visible reports whether a queue holds an entry or a deque holds a fork. The fork may be claimed already.
func (p *Pool) visible() bool {
	if p.injector.len() > 0 || p.given.len() > 0 {
		return true
	}
	for _, w := range *p.workers.Load() {
		if w.queues && !w.queue.empty() || !w.forks.empty() {
			return true
		}
	}
	return false
}

// do runs e until it suspends, yields or ends.
func (w *worker) do(e entry) {
	s := e.fiber
	switch {
	case s != nil:
		if e.woken && s.counted {
			w.wakes.Add(1)
			w.suspended.Add(-1)
		}
	case e.f != nil:
		s = w.fiber(true)
		s.Start(s.function(e))
	default:
		s = w.fiber(false)
		s.Start(e.fork.run)
	}
	w.runFiber(s)
}

func (w *worker) runFiber(s *fiber) {
	counted := s.counted
	s.worker = w
	s.base = w.forks.bottom.Load()
	if s.carried != nil {
		w.restore(s)
	}
	s.WatchedBy(w.stalls)
	w.stalls.Begin()
	why, woken := s.Step(), false
	if why == coro.Parked {
		if !s.joins && w.forks.above(s.base) {
			w.waited = true
		}
		if !s.commit() {
			why, woken = coro.Yielded, true
		}
	}
	switch why {
	case coro.Parked: // another worker may be running the task by now
		if counted {
			w.suspended.Add(1)
		}
	case coro.Yielded:
		if woken && counted {
			w.suspended.Add(1)
		}
		e := entry{fiber: s, woken: woken}
		if w.leaves(s) {
			w.pool.given.push(e)
		} else if !w.takes(e) {
			w.pool.injector.push(e)
		}
		w.pool.announce()
	case coro.Ended:
		w.keep(s)
	case coro.Exited:
		w.pool.coroutines.Add(-1)
	}
	if why >= coro.Ended && counted {
		w.pool.ended(w.part)
	}
}

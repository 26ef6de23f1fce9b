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
// searches. A worker that has searched and found an entry wakes the next worker, if there are more entries. Each worker
// has its mode in a word of its own. All workers share only Pool.wanted, which is written when a worker falls asleep, and
// when a producer wakes one. -W> is the worker, -P> a producer, another worker, a drop or finish:
//
//	awake      -W> searching   it has no work
//	searching  -W> awake       it has found work, or ends
//	searching  -W> asleep
//	asleep     -P> searching   there is work: -P> has reset Pool.wanted, and unparks the worker
//	asleep     -P> awake       the worker is asked to do something (see asked), or the pool is over; -P> unparks it, too
//	asleep     -W> searching   it has seen work after it announced its sleep
//
// The steps are:
//
//	producer  1 publish the work     2 load wanted; if set, reset it and wake a worker
//	sleeper   1 the mode is asleep   2 set wanted, unless a worker searches   3 check all queues again   4 park
//	finder    1 the mode is awake    2 set wanted, if a worker sleeps and none searches
//
// Invariant: while a task is runnable, at least one worker is awake and will check the queues. Of a sleeper and a finder, one sees
// the other's mode, so wanted is set. Of a producer and the last sleeper, the producer sees wanted, or the sleeper the work.
// Wanted may be set although nobody sleeps; then a producer resets it in vain. Debt: the caller whose CAS ends a sleep must unpark the worker.
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
	outside  uint  // counts the calls of takeOutside
	shard    uint  // the shard that takeOutside looks at first, modulo their number
	others   yieldtimer.Timer
	random   uint64
	fibers   []*fiber // idle fibers, for reuse; see keep
	needless int      // the minimum of len(fibers) since the last drop
	expects  bool     // a drop will come: there were fibers since the last one
	stalls   *coro.Stalls

	thread   suspend.Task // parks the worker
	woken    bool         // w was woken to search
	stuck    bool         // counted in pool.growth.stuck; guarded by pool.mu
	dropping bool         // w must call dropNeedless; guarded by pool.mu

	moved     atomicx.Int64 // the time of the last reading of the clock
	suspended atomicx.Int64 // the worker counts suspensions, wakes and steals; Stats adds them up
	wakes     atomicx.Uint64
	steals    atomicx.Uint64

	_     [64]byte
	mode  atomicx.Uint32 // see the states above; other workers read it whenever they fall asleep
	asked atomicx.Bool   // makes w call retires between two steps; set under pool.mu
	_     [56]byte
	queue queue // the entries that the steps of w make runnable; see takes
}

// The modes of a worker.
const (
	awake uint32 = iota
	searching
	asleep
)

func newWorker(p *Pool, i int) *worker {
	w := &worker{pool: p, queues: p.queues, random: uint64(i)*splitmix.Golden + 1, thread: sched.NewThread()}
	w.forks.init(0)
	if p.queues {
		w.queue.init(queueSize)
		w.part = uint(numShards + i%p.opts.Workers)
		w.looks, w.shard = uint(i), uint(i) // so that the workers do not all look at the same one
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
		all[0].stalls.Rows((*common)(p))
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
		if !w.woken { // a worker that was woken to search skips pick
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
	w.woken = false
	w.mode.Store(searching) // a worker that was woken to search is searching already
	if p.wanted.Load() {
		p.wanted.Store(false) // w sets it again if it finds work
	}
	for round := range searchRounds {
		if e, ok = p.injector.pop(); !ok && round == 0 && w.queues { // method sleep reads the shards again
			e, ok = w.takeOutside(false)
		}
		if !ok {
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
			w.endSearch()
			return e, true
		}
	}
	return e, false
}

// endSearch is called when w has found work, or ends. A producer that found w searching has woken no worker, because it relies on w.
func (w *worker) endSearch() {
	w.mode.Store(awake)
	if p := w.pool; p.want() && p.visible() {
		p.wake()
	}
}

// sleep parks w until there may be work. It returns false when the pool has ended.
func (w *worker) sleep() bool {
	p := w.pool
	w.stalls.End()
	w.stalls.Slept()
	w.mode.Store(asleep)
	p.want()
	// These loads follow the announcement. They pair with a producer's load of p.wanted, with the stores of w.asked, and with
	// the store of p.over in finish.
	if w.isOver() {
		return false
	}
	if w.asked.Load() || p.visible() {
		w.mode.CompareAndSwap(asleep, searching) // this fails if w was woken already
	}
	for w.mode.Load() == asleep {
		w.thread.Park() // Park may return because of an earlier Unpark, made while w was awake
	}
	w.woken = w.mode.Load() == searching
	return !w.isOver()
}

// modes returns how many workers search, and how many sleep.
func (p *Pool) modes() (search, sleep int) {
	for _, w := range *p.workers.Load() {
		switch w.mode.Load() {
		case searching:
			search++
		case asleep:
			sleep++
		}
	}
	return search, sleep
}

// want sets p.wanted if workers sleep and none searches, and reports whether it is set.
func (p *Pool) want() bool {
	if p.wanted.Load() {
		return true
	}
	if search, sleep := p.modes(); search > 0 || sleep == 0 {
		return false
	}
	p.wanted.Store(true)
	return true
}

// wake wakes a sleeping worker, if one is wanted. Of several callers, the one that resets p.wanted does.
func (p *Pool) wake() {
	if !p.wanted.CompareAndSwap(true, false) {
		return
	}
	for _, w := range *p.workers.Load() { // the first ones wake again and again, so that the others need not be scheduled
		if w.mode.Load() == asleep && w.wakeTo(searching) {
			return
		}
	}
}

// wakeTo ends the sleep of w, and returns true. If w does not sleep, it returns false.
func (w *worker) wakeTo(mode uint32) bool {
	if !w.mode.CompareAndSwap(asleep, mode) {
		return false
	}
	w.thread.Unpark()
	return true
}

// visible reports whether a queue holds an entry or a deque holds a fork. The fork may be claimed already.
func (p *Pool) visible() bool {
	if p.injector.len() > 0 || p.given.len() > 0 || p.outside() > 0 {
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

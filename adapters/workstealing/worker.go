package workstealing

import (
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
)

// A worker is a goroutine that runs what is runnable.
//
// Workers sleep when there is nothing to do, and the difficulty is that one must not fall asleep while something is
// made runnable, nor all wake up because something is. As in Go's own scheduler (see the head of runtime/proc.go),
// who makes something runnable wakes a worker only if none searches, and a worker that has searched and found wakes
// the next, if there is more. The steps:
//
//	producer  1 publish the work  2 load wanted   3 if set, wake one, which searches from then on
//	worker    1 stop searching    2 announce sleep 3 look everywhere once more  4 park
//
// Invariant: if something is runnable, then a worker is awake that has yet to look for it. For a producer that finds
// wanted false has published before a worker searched on or announced its sleep, and either is followed by a look.
// Debt: who takes a worker off idle owes it the Unpark.
type worker struct {
	forks    deque
	pool     *Pool
	recycled *fork // taken back, to be used again
	picks    int   // until the next look at the injector
	breath   breath
	random   uint64
	strands  []*strand // idle
	stalls   *coro.Stalls

	thread    suspend.Task // parks the worker
	asleep    bool         // in idle; guarded by pool.mu
	searching bool         // counted in pool.searching; guarded by pool.mu, and read by the worker itself

	suspended atomicx.Int64 // these by the worker; of all workers they add up
	wakes     atomicx.Uint64
	steals    atomicx.Uint64
}

// A strand is a coroutine of the pool, whatever runs on it: a task, a callback or a stolen fork.
type strand struct {
	task    *coro.Task
	pool    *Pool
	worker  *worker // that runs it, or ran it last; written by the worker before it resumes the strand
	counted bool    // in live; written when the strand begins something
	first   entry   // what it begins with, if that is a task or a callback
	runFn   func()  // run, made once
}

func newWorker(p *Pool, i int) *worker {
	w := &worker{pool: p, picks: pollEvery, random: uint64(i)*0x9e3779b97f4a7c15 + 1, thread: suspend.Thread()}
	w.forks.init(0)
	return w
}

func (w *worker) run() {
	defer w.pool.exit()
	w.stalls = coro.WatchStalls(w.pool.opts.StallAfter, w.pool.opts.OnStall)
	defer w.stalls.Stop()
	for {
		var e entry
		var ok bool
		if !w.searching { // or it has been woken to search
			e, ok = w.pick()
		}
		if !ok {
			e, ok = w.search()
		}
		if ok {
			w.do(e)
		} else if !w.sleep() {
			break
		}
	}
	for _, s := range w.strands {
		s.task.Stop()
	}
}

// pick takes what w has at hand: its youngest fork, or else what has been in the injector longest. Every so often it
// is the other way round, and a worker without forks tries to steal first: neither kind starves the other.
func (w *worker) pick() (entry, bool) {
	w.breath.take()
	if w.picks--; w.picks <= 0 {
		w.picks = pollEvery
		if !w.forks.empty() {
			if e, ok := w.pool.injector.pop(); ok {
				return e, true
			}
		} else if f := w.steal(); f != nil {
			return entry{fork: f}, true
		}
	}
	for f := w.forks.pop(); f != nil; f = w.forks.pop() {
		if f.claim() {
			return entry{fork: f}, true
		}
	}
	return w.pool.injector.pop()
}

// steal takes a fork of another worker, trying each once, from a random one on.
func (w *worker) steal() *fork {
	w.random ^= w.random << 13
	w.random ^= w.random >> 7
	w.random ^= w.random << 17
	all := w.pool.workers
	for i, from := range all {
		if from = all[(w.random+uint64(i))%uint64(len(all))]; from == w {
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

// search looks everywhere, a few times.
func (w *worker) search() (e entry, ok bool) {
	p := w.pool
	if !w.searching { // or whoever woke w has counted it
		p.mu.Lock()
		p.search(w, true)
		p.mu.Unlock()
	}
	for range searchRounds {
		if e, ok = p.injector.pop(); !ok {
			e.fork = w.steal()
			ok = e.fork != nil
		}
		if ok {
			p.mu.Lock()
			p.search(w, false)
			p.mu.Unlock()
			// Who found w searching relies on it to look for the others.
			if p.wanted.Load() && p.visible() {
				p.wake()
			}
			return e, true
		}
	}
	return e, false
}

// sleep parks w until there may be something to do. It reports false when p is over.
func (w *worker) sleep() bool {
	p := w.pool
	w.stalls.End()
	p.mu.Lock()
	w.asleep = true
	p.idle = append(p.idle, w)
	p.search(w, false)
	p.mu.Unlock()
	// After the announcement: pairs with the loads of wanted, and with the store of over in finish.
	if p.over.Load() {
		return false
	}
	if p.visible() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.asleep { // or it has been woken
			w.asleep = false
			for i, x := range p.idle {
				if x == w {
					p.idle = append(p.idle[:i], p.idle[i+1:]...)
					break
				}
			}
			p.search(w, true)
		}
		return true
	}
	for {
		w.thread.Park() // may return for an earlier Unpark, which came when w was awake
		p.mu.Lock()
		asleep := w.asleep
		p.mu.Unlock()
		if !asleep {
			return !p.over.Load()
		}
	}
}

// search counts w among those that search, or no longer, and brings wanted up to date. p.mu is held.
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

// wake wakes a worker, unless one searches already or all are awake.
func (p *Pool) wake() {
	p.mu.Lock()
	if len(p.idle) == 0 || p.searching > 0 {
		p.mu.Unlock()
		return
	}
	last := len(p.idle) - 1
	w := p.idle[last]
	p.idle = p.idle[:last]
	w.asleep = false
	p.search(w, true)
	p.mu.Unlock()
	w.thread.Unpark()
}

// visible reports whether there is something to find, be it only a fork that is claimed already.
func (p *Pool) visible() bool {
	if p.injector.len() > 0 {
		return true
	}
	for _, w := range p.workers {
		if !w.forks.empty() {
			return true
		}
	}
	return false
}

// do runs e up to where it suspends, yields or ends.
func (w *worker) do(e entry) {
	s := e.strand
	switch {
	case s != nil:
		if e.woken && s.counted {
			w.wakes.Add(1)
			w.suspended.Add(-1)
		}
	case e.f != nil:
		s = w.strand(true)
		s.first = e
		s.task.Start(s.runFn)
	default:
		s = w.strand(false)
		s.task.Start(e.fork.run)
	}
	w.step(s)
}

func (w *worker) step(s *strand) {
	t, counted := s.task, s.counted
	s.worker = w
	w.stalls.Begin(t)
	why := t.Step()
	switch why {
	case coro.Parked: // and may be running elsewhere by now
		if counted {
			w.suspended.Add(1)
		}
	case coro.Yielded:
		woken := t.Why() == coro.Parked
		if woken && counted {
			w.suspended.Add(1)
		}
		w.pool.enqueue(entry{strand: s, woken: woken})
	case coro.Ended:
		w.keep(s)
		fallthrough
	case coro.Exited:
		if counted {
			w.pool.ended()
		}
	}
}

// run runs on the strand: a task or a callback, and then, as long as it is the turn of one that is new, the next,
// without the two switches by way of the worker. What the last one has been counted for is the worker's to count.
func (s *strand) run() {
	e := s.first
	s.first = entry{}
	for ok := true; ok; {
		var t suspend.Task // nil for a callback
		if !e.call {
			t = s.task // bound already; so this marks the extent of one task
		}
		suspend.Bind(t, e.f)
		w := s.worker
		if e, ok = w.pickNew(); ok {
			w.pool.ended()
			w.stalls.Begin(s.task)
		}
	}
}

// pickNew is pick, if it would come upon something to begin.
func (w *worker) pickNew() (e entry, ok bool) {
	if w.picks <= 1 || !w.forks.empty() {
		return e, false
	}
	if e, ok = w.pool.injector.popNew(); ok {
		w.picks--
	}
	return e, ok
}

// strand returns an idle strand. It is made and resumed by w, and by the workers that it moves to.
func (w *worker) strand(counted bool) *strand {
	var s *strand
	if last := len(w.strands) - 1; last >= 0 {
		s, w.strands[last] = w.strands[last], nil
		w.strands = w.strands[:last]
	} else {
		s = &strand{pool: w.pool, task: coro.New((*host)(w.pool))}
		s.task.Local, s.runFn = s, s.run
	}
	s.counted = counted
	return s
}

func (w *worker) keep(s *strand) {
	if len(w.strands) < maxIdle {
		w.strands = append(w.strands, s)
	} else {
		s.task.Stop()
	}
}

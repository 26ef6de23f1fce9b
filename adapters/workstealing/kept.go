package workstealing

import (
	"slices"
	"time"
)

// A worker keeps the coroutines of tasks that have ended, with their stacks, for its next tasks, because a new coroutine
// takes some microseconds, and more if its stack has to grow. It keeps at most maxIdle. Each garbage collection halves an idle
// stack of which less than a quarter is used. A coroutine that its worker has not needed from one drop to the next is stopped,
// so it is kept for less than 2*keptFor. -W> is a worker, -D> a drop, which a timer makes.
//
//	no timer   -W> timer set   a worker keeps a coroutine, or has coroutines left after a drop
//	timer set  -D> no timer    each worker must drop what it has not needed, between two steps; a worker that sleeps is woken
//
// If nothing is kept, there is no timer, so that a testing/synctest bubble finds a deadlock.
const (
	maxIdle = 256 // the maximum number of idle coroutines that a worker keeps
	keptFor = 5 * time.Second
)

func (p *Pool) newFiber() *fiber {
	p.coroutines.Add(1)
	s := &fiber{pool: p}
	s.Init(s)
	return s
}

// fiber returns an idle fiber, or makes one. The parameter counted says whether it counts in Pool.live.
func (w *worker) fiber(counted bool) *fiber {
	var s *fiber
	if last := len(w.fibers) - 1; last >= 0 {
		s, w.fibers[last] = w.fibers[last], nil
		w.fibers = w.fibers[:last]
		if last < w.needless {
			w.needless = last
		}
	} else {
		s = w.pool.newFiber()
	}
	s.counted = counted
	return s
}

// keep keeps s, whose task has ended.
func (w *worker) keep(s *fiber) {
	if len(w.fibers) == maxIdle {
		w.pool.stop(s)
		return
	}
	w.fibers = append(w.fibers, s)
	if !w.expects {
		w.expects = true
		w.pool.dropLater()
	}
}

// stop ends idle fibers.
func (p *Pool) stop(idle ...*fiber) {
	for _, s := range idle {
		s.Stop()
	}
	p.coroutines.Add(-int64(len(idle)))
}

// dropLater sets the timer of the next drop, unless it is set.
func (p *Pool) dropLater() {
	if p.drops.CompareAndSwap(false, true) {
		time.AfterFunc(keptFor, p.dropKept)
	}
}

// dropKept makes each worker drop the coroutines that it has not needed since the last drop.
func (p *Pool) dropKept() {
	p.drops.Store(false)
	p.mu.Lock()
	all := *p.workers.Load()
	for _, w := range all {
		w.dropping = true
		w.asked.Store(true)
	}
	p.mu.Unlock()
	for _, w := range all {
		w.wakeTo(awake)
	}
}

// dropNeedless stops the first w.needless fibers, on a goroutine that Close waits for. Only w calls it.
func (w *worker) dropNeedless() {
	p := w.pool
	if w.needless > 0 {
		idle := slices.Clone(w.fibers[:w.needless])
		w.fibers = slices.Delete(w.fibers, 0, w.needless)
		p.goroutines.Add(1) // the count is positive here, because w has not ended
		go func() {
			defer p.exit()
			p.stop(idle...)
		}()
	}
	w.needless = len(w.fibers)
	if w.expects = w.needless > 0; w.expects {
		p.dropLater()
	}
}

// dropAll stops the idle fibers of w, which ends, too.
func (w *worker) dropAll() {
	w.needless = len(w.fibers)
	w.dropNeedless()
}

package workstealing

import (
	"runtime/metrics"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
)

// A pool grows by one worker when a worker waits natively, much as Go's runtime hands the processor of a blocked thread
// to another thread. -L> is a look, which is a call of w.lasts by the watch of a worker w, and -W> is w itself.
//
//	w runs   -L> w stuck   and one worker more, if work waits, no worker looks for any, and w waits natively
//	w stuck  -W> ends      its step has ended, and another worker runs in its place
//	w stuck  -W> w runs    its step has ended, and other workers are stuck, or w is the first: then another worker ends
//
// Invariant: Options.Workers workers are not stuck. One more worker runs while a step that was stuck continues.
type growth struct {
	stuck  atomicx.Int64 // counts the stuck workers; written under Pool.mu
	looked time.Time     // the time of the last inspection of the stacks; guarded by Pool.mu
	start  func(w *worker)
}

const (
	oftener      = 4           // factor by which looks are more frequent while a worker is stuck, because others tend to get stuck, too
	atLastAfter  = 10          // multiple of GrowAfter after which the pool inspects the stacks although enough goroutines run
	seldomStacks = time.Second // the least time between two such inspections
)

// growAfter returns how long a step of a worker w may last before its watch calls w.lasts.
func (p *Pool) growAfter() time.Duration {
	if p.growth.stuck.Load() > 0 {
		return p.opts.GrowAfter / oftener
	}
	return p.opts.GrowAfter
}

// lasts makes the pool grow if the step of w waits natively. The watch of w calls it repeatedly during the step, until
// it returns true.
func (w *worker) lasts(held time.Duration) (enough bool) {
	p := w.pool
	p.mu.Lock()
	stuck, may, run := w.stuck, p.mayGrowLocked(), p.runLocked()
	p.mu.Unlock()
	if stuck || !may {
		return stuck
	}
	every := p.growAfter() / 2
	switch n := running(); {
	case n == 0: // no goroutine runs, so every step that takes this long waits natively
		p.grow(slices.DeleteFunc(slices.Clone(*p.workers.Load()), func(w *worker) bool { return !w.stalls.Lasts() }))
		return false
	case coro.Early(held):
		return false
	case n >= run: // every worker may be computing
		if held < atLastAfter*p.opts.GrowAfter {
			return false
		}
		every = seldomStacks
	}
	if all := p.toLookAt(every); all != nil {
		p.grow(waiting(held, all))
	}
	return false
}

// mayGrowLocked reports whether p may grow: there is work that no worker searches for, and p has fewer than MaxWorkers
// workers.
func (p *Pool) mayGrowLocked() bool {
	search, sleep := p.modes()
	return !p.over.Load() && search == 0 && sleep == 0 && len(*p.workers.Load()) < p.opts.MaxWorkers && p.visible()
}

// runLocked returns how many workers are not stuck.
func (p *Pool) runLocked() int { return len(*p.workers.Load()) - int(p.growth.stuck.Load()) }

// running returns how many other goroutines of the process are running or runnable. The result may be too high, but it
// is 0 only if there is no such goroutine.
func running() int {
	samples := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(samples)
	n := -1
	for _, s := range samples {
		n += int(s.Value.Uint64())
	}
	return n
}

// toLookAt returns all workers, or nil if less time than the parameter every has passed since the last inspection of
// the stacks.
func (p *Pool) toLookAt(every time.Duration) []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.growth.looked) < every {
		return nil
	}
	p.growth.looked = now
	return *p.workers.Load()
}

// waiting returns those workers whose tasks wait natively, according to the stacks.
func waiting(held time.Duration, all []*worker) []*worker {
	of := make(map[*coro.Stalls]*worker, len(all))
	for _, w := range all {
		of[w.stalls] = w
	}
	return coro.Waits(held, of)
}

// grow marks the given workers as stuck, and adds workers in their place.
func (p *Pool) grow(stuck []*worker) {
	p.mu.Lock()
	may := p.mayGrowLocked() // one of the workers may be asleep by now
	if may {
		p.growLocked(stuck)
	}
	p.mu.Unlock()
	if may {
		for _, w := range stuck {
			w.wakeTo(awake) // w may have fallen asleep before it was asked
		}
	}
}

func (p *Pool) growLocked(stuck []*worker) {
	all := slices.Clone(*p.workers.Load())
	for _, w := range stuck {
		if !w.stuck && slices.Contains(all, w) { // if the step has ended by now, w.retires resets the mark
			w.stuck = true
			w.asked.Store(true)
			p.growth.stuck.Add(1)
		}
	}
	before := len(all)
	for n := p.opts.Workers - p.runLocked(); n > 0 && len(all) < p.opts.MaxWorkers; n-- {
		w := newWorker(p, len(all))
		w.watchSteps()
		all = append(all, w)
	}
	p.workers.Store(&all)
	p.goroutines.Add(int64(len(all) - before)) // the count is positive here, because a worker needs the lock to end
	for _, w := range all[before:] {
		p.growth.start(w)
	}
}

// retires reports whether w must end, and drops coroutines if a drop has asked for that. w calls it between two steps if
// w.asked is set.
func (w *worker) retires() bool {
	p := w.pool
	if w.queues {
		p.spill(&w.queue) // w may end
	}
	p.mu.Lock()
	w.asked.Store(false)
	if w.dropping {
		w.dropping = false
		w.dropNeedless()
	}
	w.moveLocked()
	all := *p.workers.Load()
	first := all[0] // this worker never ends, because it is watched for rows of steps and takes over the counts of workers that end
	switch {
	case p.runLocked() <= p.opts.Workers:
		p.mu.Unlock()
		return false
	case w == first:
		other := p.asleepOrLastLocked()
		if other == nil { // every surplus worker has been asked already
			p.mu.Unlock()
			return false
		}
		other.asked.Store(true)
		p.mu.Unlock()
		other.wakeTo(awake)
		return false
	case !w.forks.empty():
		w.asked.Store(true) // w will call retires again
		p.mu.Unlock()
		return false
	}
	less := slices.DeleteFunc(slices.Clone(all), func(x *worker) bool { return x == w })
	p.workers.Store(&less)
	first.suspended.Add(w.suspended.Load())
	first.wakes.Add(w.wakes.Load())
	first.steals.Add(w.steals.Load())
	p.mu.Unlock()
	w.endSearch()
	return true
}

// moveLocked removes the mark of w, whose step has ended.
func (w *worker) moveLocked() {
	if w.stuck {
		w.stuck = false
		w.pool.growth.stuck.Add(-1)
	}
}

// isOver reports whether the pool has ended, and w must end, too.
func (w *worker) isOver() bool {
	p := w.pool
	if !p.over.Load() {
		return false
	}
	p.mu.Lock() // a growth that has begun ends first, so it adds its workers before the last one ends
	w.moveLocked()
	p.mu.Unlock()
	return true
}

// asleepOrLastLocked returns a worker other than the first that is neither stuck nor already asked to retire, and
// preferably a sleeping worker. It returns nil if all have been asked; each of them either ends, or finds that it is
// not surplus.
func (p *Pool) asleepOrLastLocked() (other *worker) {
	for _, x := range (*p.workers.Load())[1:] {
		if !x.stuck && !x.asked.Load() && (other == nil || x.mode.Load() == asleep) {
			other = x
		}
	}
	return other
}

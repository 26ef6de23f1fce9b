package workstealing

import (
	"runtime/metrics"
	"slices"
	"time"

	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
)

// A pool grows by a worker when one waits natively, as Go's runtime gives the processor of a thread that is stuck to another thread. -L> is
// a look of the watch of a worker w, -W> is w.
//
//	w runs   -L> w stuck   and one worker more, if work waits, no worker looks for any, and w waits natively
//	w stuck  -W> ends      its step has ended, and another worker runs in its place
//	w stuck  -W> w runs    the same, but other workers are stuck, or w is the first: then another worker ends
//
// Invariant: Options.Workers workers are not stuck. One more runs while a step goes on that was stuck.
type growth struct {
	stuck  atomicx.Int64 // workers; written under Pool.mu
	looked time.Time     // when the stacks were looked at last; guarded by Pool.mu
	start  func(w *worker)
}

const (
	oftener      = 4           // times as often a pool looks while a worker is stuck: others tend to follow
	atLastAfter  = 10          // times GrowAfter, and the stacks are looked at, though no goroutine is missing
	seldomStacks = time.Second // the least time between two such looks
)

// growAfter is how long a step may last before the watch looks.
func (p *Pool) growAfter() time.Duration {
	if p.growth.stuck.Load() > 0 {
		return p.opts.GrowAfter / oftener
	}
	return p.opts.GrowAfter
}

// lasts is called by the watch of w again and again while a step lasts, until it returns true.
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
	case n == 0: // so each step that lasts waits
		p.grow(slices.DeleteFunc(slices.Clone(*p.workers.Load()), func(w *worker) bool { return !w.stalls.Lasts() }))
		return false
	case coro.Early(held):
		return false
	case n >= run: // all may compute
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

// mayGrowLocked reports whether work waits that no worker looks for.
func (p *Pool) mayGrowLocked() bool {
	return !p.over.Load() && len(p.idle) == 0 && p.searching == 0 && len(*p.workers.Load()) < p.opts.MaxWorkers && p.visible()
}

// runLocked returns how many workers are not stuck.
func (p *Pool) runLocked() int { return len(*p.workers.Load()) - int(p.growth.stuck.Load()) }

// running returns how many other goroutines of the process run, or could. It may count too many, but it never misses
// the last goroutine.
func running() int {
	samples := []metrics.Sample{{Name: "/sched/goroutines/running:goroutines"}, {Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(samples)
	n := -1
	for _, s := range samples {
		n += int(s.Value.Uint64())
	}
	return n
}

// toLookAt returns all workers, or nil if somebody has looked at them within this time.
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

// waiting returns the workers whose tasks wait natively, from the stacks.
func waiting(held time.Duration, all []*worker) []*worker {
	of := make(map[*coro.Stalls]*worker, len(all))
	for _, w := range all {
		of[w.stalls] = w
	}
	return coro.Waits(held, of)
}

// grow says that these workers are stuck, and adds others in their place.
func (p *Pool) grow(stuck []*worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mayGrowLocked() { // then a worker of stuck may sleep
		return
	}
	all := slices.Clone(*p.workers.Load())
	for _, w := range stuck {
		if !w.stuck && slices.Contains(all, w) { // its step may have ended; w sees to that
			w.stuck = true
			w.asked.Store(true)
			p.growth.stuck.Add(1)
		}
	}
	before := len(all)
	for n := p.opts.Workers - p.runLocked(); n > 0 && len(all) < p.opts.MaxWorkers; n-- {
		w := newWorker(p, len(all))
		w.watch()
		all = append(all, w)
	}
	p.workers.Store(&all)
	p.goroutines.Add(int64(len(all) - before)) // the count stays positive, so finish has to wait for the lock
	for _, w := range all[before:] {
		p.growth.start(w)
	}
}

// retires is called by w between two steps, if it is asked to. It reports whether w ends.
func (w *worker) retires() bool {
	p := w.pool
	p.mu.Lock()
	w.asked.Store(false)
	if w.stuck {
		w.stuck = false
		p.growth.stuck.Add(-1)
	}
	all := *p.workers.Load()
	first := all[0] // is watched for rows of steps, and keeps the counts
	switch {
	case p.runLocked() <= p.opts.Workers:
		p.mu.Unlock()
		return false
	case w == first:
		other := p.asleepOrLastLocked()
		if other == nil { // each surplus worker is asked already
			p.mu.Unlock()
			return false
		}
		other.asked.Store(true)
		sleeps := other.asleep
		if sleeps {
			p.rouse(other)
		}
		p.mu.Unlock()
		if sleeps {
			other.thread.Unpark()
		}
		return false
	case !w.forks.empty():
		w.asked.Store(true) // again
		p.mu.Unlock()
		return false
	}
	less := slices.DeleteFunc(slices.Clone(all), func(x *worker) bool { return x == w })
	p.workers.Store(&less)
	p.search(w, false)
	first.suspended.Add(w.suspended.Load())
	first.wakes.Add(w.wakes.Load())
	first.steals.Add(w.steals.Load())
	p.mu.Unlock()
	if p.wanted.Load() && p.visible() { // a producer that found w searching relies on w
		p.wake()
	}
	return true
}

// asleepOrLastLocked returns a worker that is not stuck, not asked, and not the first. It sleeps if one does. There is none where all have
// been asked, and each that has been asked is one too many, or will find that it is not.
func (p *Pool) asleepOrLastLocked() (other *worker) {
	for _, x := range (*p.workers.Load())[1:] {
		if !x.stuck && !x.asked.Load() && (other == nil || x.asleep) {
			other = x
		}
	}
	return other
}

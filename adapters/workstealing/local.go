package workstealing

import "time"

// In a large pool, each worker keeps the entries that its own steps make runnable in its queue, where they cost no write to
// a word that all workers share. The entries of goroutines outside the pool are in the shards (see shard), and all others in the
// injector. The rules below keep such a pool about as fair as the injector alone, which is first in, first out:
//
//	takes      an entry goes to the queue only while the queue is short and no crowd waits in the injector
//	pick       the injector comes before the queue, and the queue before the shards
//	beginTurn  the shards move to the end of the injector, if the worker has anything else; then the queue, if entries wait there
//	takeGiven  the same, because a fiber from Pool.given overtakes the queue
//	measure    the same, if steps are so long that the queue would take longer than a turn
//	look       the same for another worker that has been in one step for a while
//	steal      a worker without work takes one entry at a time
//
// Invariant: the entries of a queue take about a tenth of a millisecond, as a turn does. So an entry that is made runnable
// is overtaken by a turn of each worker at most, also in a shard.

const (
	measureEvery = 8                      // picks between two readings of the clock
	tenth        = 100 * time.Microsecond // the time that the entries of a queue may take
	stuckAfter   = 500 * time.Microsecond // the time in one step after which another worker moves the queue
)

var epoch = time.Now()

// takes adds e to the queue of w. It returns false if e must go to the injector instead. The caller is the task that w runs,
// or w itself between two steps.
func (w *worker) takes(e entry) bool {
	return w.room > w.queue.len() && w.pool.injector.len() < w.pool.crowd && w.queue.push(e)
}

// counted is called for each pick of a worker that has a queue.
func (w *worker) counted() {
	if w.steps++; w.steps >= measureEvery {
		w.measure()
	}
}

// woke is called when w has slept, so that the sleep does not look like a long step.
func (w *worker) woke() {
	w.steps = 0
	w.moved.Store(int64(time.Since(epoch)))
}

// measure sets the room in the queue of w by the time of the last steps. The room grows slowly, because long steps may come
// again, and shrinks at once.
func (w *worker) measure() {
	now := int64(time.Since(epoch))
	if w.steps > 0 { // otherwise w has run one task, which gives way
		w.room = min(roomFor(w.steps, now-w.moved.Load()), 2*w.room+1)
	}
	w.steps = 0
	w.moved.Store(now)
	if w.queue.len() > w.room {
		w.pool.spill(&w.queue)
	}
	if now >= w.nextLook {
		w.nextLook = now + int64(tenth)
		w.look(now)
	}
}

// look moves the queue of another worker to the injector if that worker has measured nothing for stuckAfter. Each look is
// at the next worker.
func (w *worker) look(now int64) {
	all := *w.pool.workers.Load()
	w.looks++
	if x := all[w.looks%uint(len(all))]; x != w && now-x.moved.Load() > int64(stuckAfter) {
		w.pool.spill(&x.queue)
	}
}

// spill moves the entries of q to the injector.
func (p *Pool) spill(q *queue) {
	if q.empty() {
		return
	}
	p.injector.pushAll(q.pop)
	p.announce() // a worker that has looked in between has found the entries in neither
}

// stealQueued takes the oldest entry from the queue of another worker. It tries each worker once, beginning with a random
// worker. It takes one entry, and not half of them as Go's scheduler and tokio do: what it would take along would wait for its
// own turns, while the first free worker could run it.
func (w *worker) stealQueued() (e entry, ok bool) {
	all, first := w.victims()
	for i := range all {
		if from := all[(first+uint64(i))%uint64(len(all))]; from != w {
			if e, ok = from.queue.pop(); ok {
				break
			}
		}
	}
	return e, ok
}

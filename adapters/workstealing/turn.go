package workstealing

// A class names one of two queues. Each turn of a worker has a class, which is the queue that the worker picks from
// first. A turn ends after 61 picks, or about a tenth of a millisecond.
type class uint8

const (
	queued class = iota // the injector, the shards and the queues hold new and woken entries, and fibers that have yielded without forks
	given               // Pool.given holds fibers that carry forks; they have yielded, or given way (see takenBack)
)

// pick takes the next entry. Forks come last, because a fork becomes another fiber, which is no use while fibers are
// runnable. But a task may be waiting for its forks. Then forks come first in every third turn, otherwise in every
// thousandth.
func (w *worker) pick() (e entry, ok bool) {
	if w.picks <= 0 { // checked before this pick is counted, because a turn may consist of one pick
		w.nextTurn(queued + given - w.turn)
		if w.forks.empty() && w.pool.given.len() == 0 { // another worker's fork may have waited for long
			if f := w.steal(); f != nil {
				return entry{fork: f}, true
			}
		}
	}
	w.picks--
	if w.queues {
		w.counted()
	}
	if w.first {
		if e, ok = w.takeOldest(); ok {
			w.first = w.waited
			return e, true
		}
	}
	if w.turn == given && w.pool.given.len() > 0 {
		if e, ok = w.takeGiven(); ok {
			return e, true
		}
	}
	if e, ok = w.pool.injector.pop(); ok {
		return e, true
	}
	if w.queues {
		if e, ok = w.queue.pop(); ok {
			return e, true
		}
		if e, ok = w.takeOutside(false); ok {
			return e, true
		}
	}
	if e, ok = w.takeGiven(); ok {
		return e, true
	}
	return w.takeFork()
}

// pickNew is like pick, but takes the next entry only if it is a new task or a callback. It takes nothing if w must
// retire, because the step has to end first.
func (w *worker) pickNew() (e entry, ok bool) {
	if w.asked.Load() || w.picks <= 0 || w.first || w.turn == given && w.pool.given.len() > 0 {
		return e, false
	}
	switch {
	case !w.queues || w.pool.injector.len() > 0:
		e, ok = w.pool.injector.popNew()
	case w.queue.len() > 0:
		e, ok = w.queue.popNew()
	default:
		e, ok = w.takeOutside(true)
	}
	if ok {
		w.picks--
		if w.queues {
			w.counted()
		}
	}
	return e, ok
}

// takeGiven takes the oldest fiber that carries its forks. A new turn begins with that fiber.
func (w *worker) takeGiven() (e entry, ok bool) {
	if e, ok = w.pool.given.pop(); ok {
		if w.queues {
			w.pool.spill(&w.queue)
		}
		w.beginTurn(given)
	}
	return e, ok
}

// nextTurn begins a turn of class c, counts the turn, and decides whether forks come first.
func (w *worker) nextTurn(c class) {
	w.turns++
	w.first = w.waited && w.turns%3 == 0 || w.turns%hardlyEver == 0
	w.beginTurn(c)
}

// beginTurn begins a turn of class c.
func (w *worker) beginTurn(c class) {
	left := w.others.Ticks(w.length - w.picks)
	w.length = min(left, pollEvery)
	w.turn, w.picks = c, w.length
	if w.queues {
		w.measure()
		if w.queue.len() > 0 || w.pool.injector.len() > 0 {
			w.pool.gather()
		}
		if w.queue.len() > 0 && w.pool.injector.len() > 0 {
			w.pool.spill(&w.queue)
		}
	}
}

// behind shortens the turn to as many picks as there are entries in the injector, the shards and w's queue now.
func (w *worker) behind() {
	w.length = max(1, min(w.length, w.pool.waiting()+w.queue.len()))
	w.picks = w.length
}

// takenBack is called when s has taken back a fork, which counts as a pick. Otherwise a task that forks and never
// suspends would keep other tasks from running. At the end of the turn s gives way, and later resumes before its own
// forks run.
func (w *worker) takenBack(s *fiber) {
	if w.picks--; w.picks <= 0 {
		w.giveWay(s)
	}
}

// giveWay makes s yield if another entry or fork is due before it.
func (w *worker) giveWay(s *fiber) {
	s.turns++
	long := s.turns >= seldom
	others := w.pool.waiting()+w.queue.len() > 0
	switch {
	case others && (w.turn == given || w.pool.given.len() == 0):
		w.nextTurn(queued)
		w.behind()
	case others: // they have had the whole turn
		w.nextTurn(given)
	case (long || w.waited) && w.forks.below(s.base):
		w.nextTurn(queued)
		w.first = true
	case long && w.pool.given.len() > 0:
		w.nextTurn(given)
	default:
		w.beginTurn(w.turn)
		return
	}
	s.turns, s.gave = 0, true
	s.Yield()
}

// leaves moves the forks of s, which is runnable and about to be queued, from the deque to s. It reports whether s
// belongs in Pool.given.
func (w *worker) leaves(s *fiber) bool {
	if s.gave {
		s.gave = false
		w.carry(s)
		return true
	}
	if !w.forks.above(s.base) {
		return false
	}
	if w.turn == given {
		w.beginTurn(queued)
		w.behind()
	}
	if s.yields++; s.yields%hardlyEver != 0 {
		w.carry(s)
		return true
	}
	// One fork stays in the deque, because s may be yielding until one of its forks has run.
	if f := w.forks.pop(); f != nil {
		w.carry(s)
		w.forks.push(f)
	}
	return true
}

// carry moves forks of s, which is runnable, from the deque to s.carried. If they stayed in the deque, w would begin
// each on a separate fiber, which gives way in turn. The number of fibers would grow faster than w could run them.
func (w *worker) carry(s *fiber) {
	for n := 0; n < carried && w.forks.above(s.base); n++ {
		f := w.forks.pop()
		if f == nil { // the fork was stolen
			return
		}
		f.next, s.carried = s.carried, f
	}
}

// restore puts the forks that s carries back into the deque of w.
func (w *worker) restore(s *fiber) {
	for f := s.carried; f != nil; {
		next := f.next
		f.next = nil
		w.forks.push(f)
		f = next
	}
	s.carried = nil
	w.pool.announce()
}

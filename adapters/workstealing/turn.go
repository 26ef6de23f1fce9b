package workstealing

// A class is one of two queues, which take turns to be picked first. A turn ends after 61 picks, or some tenth of a millisecond.
type class uint8

const (
	queued class = iota // the injector: new and woken entries, and fibers without forks that have yielded
	given               // fibers that carry their forks: they have given way, see takenBack, or yielded
)

// pick takes the next entry. Forks come last: a fork becomes a fiber, and while there are runnable fibers another one helps nobody. But
// a task may wait for its forks. Then these come first in every third turn, and else once in a while.
func (w *worker) pick() (e entry, ok bool) {
	if w.picks <= 0 { // before this one is counted: a turn may have one pick only
		w.next(queued + given - w.turn)
		if w.forks.empty() && w.pool.given.len() == 0 { // another worker's fork may wait for long
			if f := w.steal(); f != nil {
				return entry{fork: f}, true
			}
		}
	}
	w.picks--
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
	if e, ok = w.takeGiven(); ok {
		return e, true
	}
	return w.takeFork()
}

// pickNew is pick, if the next entry is a task to begin or a callback. A worker that is asked to retire ends its step first.
func (w *worker) pickNew() (e entry, ok bool) {
	if w.asked.Load() || w.picks <= 0 || w.first || w.turn == given && w.pool.given.len() > 0 {
		return e, false
	}
	if e, ok = w.pool.injector.popNew(); ok {
		w.picks--
	}
	return e, ok
}

// takeGiven takes the oldest of the fibers that carry their forks. It has a whole turn.
func (w *worker) takeGiven() (e entry, ok bool) {
	if e, ok = w.pool.given.pop(); ok {
		w.begin(given)
	}
	return e, ok
}

// next begins a turn after another.
func (w *worker) next(c class) {
	w.turns++
	w.first = w.waited && w.turns%3 == 0 || w.turns%hardlyEver == 0
	w.begin(c)
}

// begin begins a turn.
func (w *worker) begin(c class) {
	left := w.others.Ticks(w.length - w.picks)
	w.length = min(left, pollEvery)
	w.turn, w.picks = c, w.length
}

// behind makes a turn end after the entries that are queued now.
func (w *worker) behind() {
	w.length = max(1, min(w.length, int(w.pool.injector.len())))
	w.picks = w.length
}

// takenBack counts as a pick of w: otherwise a task that forks and never suspends would keep other tasks from their
// turn. It gives way, and goes on before its own forks.
func (w *worker) takenBack(s *fiber) {
	if w.picks--; w.picks <= 0 {
		w.giveWay(s)
	}
}

// giveWay yields if there is something that has not had its turn.
func (w *worker) giveWay(s *fiber) {
	s.turns++
	long := s.turns >= seldom
	switch {
	case w.pool.injector.len() > 0 && (w.turn == given || w.pool.given.len() == 0):
		w.next(queued)
		w.behind()
	case w.pool.injector.len() > 0: // tasks of the queue have had the whole turn
		w.next(given)
	case (long || w.waited) && w.forks.below(s.base):
		w.next(queued)
		w.first = true
	case long && w.pool.given.len() > 0:
		w.next(given)
	default:
		w.begin(w.turn)
		return
	}
	s.turns, s.gave = 0, true
	s.Yield()
}

// leaves carries the forks of s, which is runnable and leaves w to others. It reports whether s goes to the queue of
// fibers with forks.
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
		w.begin(queued)
		w.behind()
	}
	if s.yields++; s.yields%hardlyEver != 0 {
		w.carry(s)
		return true
	}
	// s may yield until one of its forks has done something.
	if f := w.forks.pop(); f != nil {
		w.carry(s)
		w.forks.push(f)
	}
	return true
}

// carry takes forks of s, which is runnable, off the deque: s goes on with them. In the deque w would begin each fork
// on a separate fiber, which gives way in turn, and so on, until there are more fibers than could ever have their turn.
func (w *worker) carry(s *fiber) {
	for n := 0; n < carried && w.forks.above(s.base); n++ {
		f := w.forks.pop()
		if f == nil { // stolen
			return
		}
		f.next, s.carried = s.carried, f
	}
}

// restore puts back what s carries.
func (w *worker) restore(s *fiber) {
	for f := s.carried; f != nil; {
		next := f.next
		f.next = nil
		w.forks.push(f)
		f = next
	}
	s.carried = nil
	if w.pool.wanted.Load() { // after the push: see Pool.wanted
		w.pool.wake()
	}
}

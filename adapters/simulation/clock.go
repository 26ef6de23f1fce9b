package simulation

import (
	"math"
	"math/bits"
	"time"
)

// A timer calls a function of a host at a given time.
type timer struct {
	at   time.Duration
	seq  uint64 // orders the timers that fire at the same time
	host *host  // the host that f belongs to, or nil for a timer of the network
	f    func()
	pos  int  // the timer's index in the heap, or -1 if it is not in the heap
	late bool // the timer has fired while its host was paused, and f has not been called yet
}

// timers is a binary heap of timers.
type timers struct {
	heap []*timer
	seq  uint64
}

func (t *timer) before(u *timer) bool { return t.at < u.at || t.at == u.at && t.seq < u.seq }

// after sets a timer that calls f after d. If h has crashed, the timer never fires.
func (w *World) after(d time.Duration, h *host, f func()) *timer {
	w.pass()
	t := &timer{at: plus(w.now, max(d, 0)), host: h, f: f, pos: -1}
	if h == nil || !h.dead {
		w.timers.add(t)
	}
	return t
}

// stop cancels t, and reports whether it has prevented the call of t.f.
func (w *World) stop(t *timer) bool {
	if !w.on() { // the caller is a goroutine of package context, in a bubble
		_ = w.fromOutside(ready{host: &w.host, as: callback, f: func() { w.stop(t) }})
		return false
	}
	switch {
	case w.over:
		return false
	case t.pos >= 0:
		w.timers.remove(t.pos)
		return true
	}
	return t.clearLate()
}

// clearLate clears t.late, and returns its old value.
func (t *timer) clearLate() bool {
	late := t.late
	t.late = false
	return late
}

// discard removes a timer of the network, if it is set.
func (w *World) discard(t *timer) {
	if t != nil && t.pos >= 0 && !w.over {
		w.timers.remove(t.pos)
	}
}

// due reports whether the next timer may fire. In a bubble a timer must not fire before the bubble's clock has reached the time of the
// timer.
func (w *World) due() bool {
	return len(w.timers.heap) > 0 && (!w.stock || w.timers.heap[0].at <= w.now)
}

// advance moves the clock forward to the next timer. Timers for the same time fire in the order in which they were set. Then the seed picks
// among all tasks that these timers have woken. A timer that is set during advance must wait for the next advance: otherwise a timer that
// always sets itself again would prevent all tasks from running.
func (w *World) advance() {
	at := max(w.timers.heap[0].at, w.now)
	if w.o.MaxTime > 0 && at > w.o.MaxTime {
		w.now = w.o.MaxTime
		w.fail(w.account(ErrTime))
		return
	}
	w.now = at
	last := w.timers.seq
	for {
		w.fire(w.timers.remove(0))
		if len(w.timers.heap) == 0 || w.timers.heap[0].at > at || w.timers.heap[0].seq > last {
			return
		}
		if w.verify(); w.over || w.steps >= w.o.MaxSteps {
			return
		}
	}
}

func (w *World) fire(t *timer) {
	switch h := t.host; {
	case h == nil: // the function of a network timer records its own event
		w.steps++
		t.f()
	case h.dead:
	case h.paused:
		t.late = true
		h.held = append(h.held, ready{host: h, as: callback, f: func() {
			if t.clearLate() {
				t.f()
			}
		}})
	default:
		w.steps++
		w.note(event{kind: fired, host: h, data: t.seq})
		w.runCallback(t.f)
	}
}

func (s *timers) add(t *timer) {
	s.seq++
	t.seq, t.pos = s.seq, len(s.heap)
	s.heap = append(s.heap, t)
	s.up(t)
}

// remove removes and returns the timer at position i.
func (s *timers) remove(i int) *timer {
	t, last := s.heap[i], len(s.heap)-1
	moved := s.heap[last]
	s.heap[last] = nil
	s.heap = s.heap[:last]
	if i < last {
		moved.pos = i
		s.heap[i] = moved
		s.down(moved)
		s.up(moved)
	}
	t.pos = -1
	return t
}

func (s *timers) up(t *timer) {
	for t.pos > 0 {
		p := s.heap[(t.pos-1)/2]
		if !t.before(p) {
			return
		}
		s.swap(t, p)
	}
}

func (s *timers) down(t *timer) {
	for {
		i := 2*t.pos + 1
		if i >= len(s.heap) {
			return
		}
		c := s.heap[i]
		if i+1 < len(s.heap) && s.heap[i+1].before(c) {
			c = s.heap[i+1]
		}
		if !c.before(t) {
			return
		}
		s.swap(t, c)
	}
}

func (s *timers) swap(t, u *timer) {
	t.pos, u.pos = u.pos, t.pos
	s.heap[t.pos], s.heap[u.pos] = t, u
}

// forever is the longest duration. The functions plus and ratio return it on an overflow.
const forever time.Duration = math.MaxInt64

// plus returns a + b. The duration b must not be negative.
func plus(a, b time.Duration) time.Duration {
	if b > forever-max(a, 0) {
		return forever
	}
	return a + b
}

// ratio returns (d*m + more) / n, rounded down. The duration d must not be negative.
func ratio(d time.Duration, m, more, n uint64) time.Duration {
	hi, lo := bits.Mul64(uint64(d), m)
	lo, carry := bits.Add64(lo, more, 0)
	if hi += carry; hi >= n {
		return forever
	}
	q, _ := bits.Div64(hi, lo, n)
	return time.Duration(min(q, uint64(forever)))
}

package simulation

import (
	"slices"
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

// pass moves w.now forward to the clock of package time, if the World uses this clock, because a native wait during a step takes time.
func (w *World) pass() {
	if w.stock {
		w.now = max(w.now, time.Since(w.begun)) // w.now is ahead of the clock if a guest waits natively
	}
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

// never is the time until the alarm if no timer is set.
const never = 10 * 365 * 24 * time.Hour

// alarm returns the time until the next timer or MaxTime, whichever is sooner.
func (w *World) alarm() time.Duration {
	d := never
	if len(w.timers.heap) > 0 {
		d = w.timers.heap[0].at - w.now
	}
	if w.o.MaxTime > 0 {
		d = min(d, w.o.MaxTime-w.now+1)
	}
	return d
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

// drop removes the timers of h.
func (s *timers) drop(h *host) {
	s.heap = slices.DeleteFunc(s.heap, func(t *timer) bool {
		if t.host == h {
			t.pos = -1
		}
		return t.host == h
	})
	slices.SortFunc(s.heap, func(t, u *timer) int {
		if t.before(u) {
			return -1
		}
		return 1
	})
	for i, t := range s.heap {
		t.pos = i
	}
}

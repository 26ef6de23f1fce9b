package simulation

import (
	"slices"
	"time"

	"github.com/braidgo/braid/simulation/internal/saturate"
)

// A timer calls a function of a host at a given time.
type timer struct {
	at   time.Duration
	seq  uint64 // orders the timers that fire at the same time
	of   owner  // the host that f belongs to, or nil for a timer of the network
	f    func()
	pos  int  // the timer's index in the heap, or -1 if it is not in the heap
	late bool // the timer has fired while its host was paused, and f has not been called yet
}

// An owner of timers is a host. Its timers end with it.
type owner interface{ gone() bool }

// timers is a binary heap of timers.
type timers struct {
	heap []*timer
	seq  uint64
}

// A clock is the virtual clock of a World, with its timers.
type clock struct {
	start  time.Time
	now    time.Duration // virtual time since the start
	timers timers
	stock  bool      // the World uses the clock of package time
	origin time.Time // the start of the run by the clock of package time
}

var newYear = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// follow makes c use the clock of package time.
func (c *clock) follow() {
	c.stock, c.origin = true, time.Now()
	c.start = c.origin
}

// pass moves c.now forward to the clock of package time, if c uses this clock, because a native wait during a step takes time.
func (c *clock) pass() {
	if c.stock {
		c.now = max(c.now, time.Since(c.origin)) // c.now is ahead of the clock if a guest waits natively
	}
}

func (t *timer) before(u *timer) bool { return t.at < u.at || t.at == u.at && t.seq < u.seq }

// after sets a timer that calls f after d. If its owner has crashed, the timer never fires.
func (c *clock) after(d time.Duration, of owner, f func()) *timer {
	c.pass()
	t := &timer{at: saturate.Plus(c.now, max(d, 0)), of: of, f: f, pos: -1}
	if of == nil || !of.gone() {
		c.timers.add(t)
	}
	return t
}

// clearLate clears t.late, and returns its old value.
func (t *timer) clearLate() bool {
	late := t.late
	t.late = false
	return late
}

// Now implements network.Clock.
func (c *clock) Now() time.Duration {
	c.pass()
	return c.now
}

// After implements network.Clock.
func (c *clock) After(d time.Duration, f func()) { c.after(d, nil, f) }

// discard removes a timer of the network, if it is set.
func (c *clock) discard(t *timer) {
	if t != nil && t.pos >= 0 {
		c.timers.remove(t.pos)
	}
}

// clear removes all timers.
func (c *clock) clear() {
	for _, t := range c.timers.heap {
		t.pos = -1
	}
	c.timers = timers{}
}

// due reports whether the next timer may fire. In a bubble a timer must not fire before the bubble's clock has reached the time of the
// timer.
func (c *clock) due() bool {
	return len(c.timers.heap) > 0 && (!c.stock || c.timers.heap[0].at <= c.now)
}

// never is the time until the alarm if no timer is set.
const never = 10 * 365 * 24 * time.Hour

// alarm returns the time until the next timer or the time most, whichever is sooner. 0 means that there is no such time.
func (c *clock) alarm(most time.Duration) time.Duration {
	d := never
	if len(c.timers.heap) > 0 {
		d = c.timers.heap[0].at - c.now
	}
	if most > 0 {
		d = min(d, most-c.now+1)
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

// drop removes the timers of an owner.
func (s *timers) drop(of owner) {
	s.heap = slices.DeleteFunc(s.heap, func(t *timer) bool {
		if t.of == of {
			t.pos = -1
		}
		return t.of == of
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

package coro

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// Strays watches the steps that go on outside of a scheduler, which others have been given. Nil watches nothing.
//
// A step is reported as by Stalls: after a limit, and again whenever the time has doubled. But a line of code is reported for one step only:
// where one step is stuck, others of the same tasks tend to be. Nothing is read or printed before the first limit has passed.
type Strays struct {
	after  time.Duration
	report func(text []byte)

	mu    atomicx.Mutex
	steps map[int64]*stray // keyed by goroutine
	lines map[string]bool  // lines that were reported
	timer *time.Timer      // set while there are steps to report
	at    time.Time        // the timer's time; zero if it is not set
}

// A stray is such a step.
type stray struct {
	since time.Time
	next  time.Duration // when it is reported
	told  bool
	other bool // its line has been reported for another
}

// WatchStrays returns Strays with the options of WatchStalls.
func WatchStrays(after time.Duration, report func(text []byte)) *Strays {
	if after < 0 || inBubble() {
		return nil
	}
	if after == 0 {
		after = defaultStallAfter
	}
	return &Strays{after: after, report: Reports(after, report), steps: map[int64]*stray{}, lines: map[string]bool{}}
}

// Out says that the step on goroutine id, which has lasted for so long, is outside.
func (s *Strays) Out(id int64, held time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &stray{since: time.Now().Add(-held), next: s.after}
	if x.told = held >= s.after; x.told { // Stalls has reported it
		x.next = 2 * held
	}
	s.steps[id] = x
	s.setTimer(x.next - held)
}

// Back says that the step has ended.
func (s *Strays) Back(id int64) {
	if s != nil {
		s.mu.Lock()
		delete(s.steps, id)
		s.mu.Unlock()
	}
}

// setTimer makes look be called after d, or earlier. The lock is held.
func (s *Strays) setTimer(d time.Duration) {
	at := time.Now().Add(d)
	switch {
	case !s.at.IsZero() && s.at.Before(at):
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.look)
	default:
		s.timer.Reset(d)
	}
	s.at = at
}

// look is called by the timer.
func (s *Strays) look() {
	now := time.Now()
	due, longest, first := map[int64]*stray{}, time.Duration(0), time.Duration(math.MaxInt64)
	s.mu.Lock()
	s.at = time.Time{}
	for id, x := range s.steps {
		switch held := now.Sub(x.since); {
		case x.other:
		case held < x.next:
			first = min(first, x.next-held)
		default:
			due[id] = x
			longest = max(longest, held)
		}
	}
	var all iter.Seq2[int64, []byte]
	if len(due) > 0 {
		if all = stacks(longest); all == nil {
			first = min(first, s.after/8) // too early
		}
	}
	if all != nil {
		for _, x := range due {
			held := now.Sub(x.since)
			x.next, first = 2*held, min(first, held)
		}
	}
	if first < math.MaxInt64 {
		s.setTimer(max(first, time.Millisecond))
	}
	s.mu.Unlock()
	if all == nil {
		return
	}
	for id, stack := range all {
		if x := due[id]; x != nil {
			if text := s.text(id, x, now, stack); text != nil {
				s.report(text) // under no lock: it may close the scheduler
			}
		}
	}
}

// text returns the report of x, nil if there is none: its step has ended, or another one is at the same line.
func (s *Strays) text(id int64, x *stray, now time.Time, stack []byte) []byte {
	at := lineOf(stack, program())
	if at == nil {
		at = lineOf(stack, []string{""})
	}
	key := string(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps[id] != x || waitState(stack) == "coroutine" {
		return nil
	}
	if x.other = !x.told && s.lines[key]; x.other {
		return nil
	}
	s.lines[key] = true
	var b bytes.Buffer
	if x.told {
		fmt.Fprintf(&b, "still, after %v: ", now.Sub(x.since).Round(time.Millisecond))
	}
	x.told = true
	fmt.Fprintf(&b, "a task has not suspended for more than %v; its scheduler goes on without it", s.after)
	if state := waitState(stack); !computes(state) {
		fmt.Fprintf(&b, "\na native wait in a task (%s): see suspend.Call and STOCK.md", state)
	}
	if at != nil {
		fmt.Fprintf(&b, "\nat %s", at)
	}
	fmt.Fprintf(&b, "\n%s", stack)
	return b.Bytes()
}

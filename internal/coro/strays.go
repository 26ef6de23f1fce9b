package coro

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Strays watches the strays of a scheduler: steps that run outside it, while the scheduler itself runs on another
// goroutine. A nil Strays watches nothing.
//
// A Strays reports a step as a Stalls does: after a limit, and again whenever the time has doubled. But each line of
// code is reported for one step only, because if one step is stuck there, similar steps tend to be stuck, too. Stacks
// are neither read nor printed before the first limit has passed.
type Strays struct {
	after  time.Duration
	report func(text []byte)

	mu    atomicx.Mutex
	steps map[int64]*stray // keyed by goroutine
	lines map[string]bool  // the lines of code that were reported
	timer *time.Timer      // made by the first step outside, and reused
	at    time.Time        // the time at which the timer will call s.inspect; zero if the timer is not set
}

// A stray is a step that runs outside its scheduler.
type stray struct {
	since time.Time
	next  time.Duration // the duration of the step at which the next report is due
	told  bool
	other bool // the line of code was reported for another step
}

// WatchStrays returns a Strays for the same options as WatchStalls. It returns nil if after is negative, and in a
// testing/synctest bubble.
func WatchStrays(after time.Duration, report func(text []byte)) *Strays {
	if after < 0 || InBubble() {
		return nil
	}
	if after == 0 {
		after = defaultStallAfter
	}
	return &Strays{after: after, report: Reports(after, report), steps: map[int64]*stray{}, lines: map[string]bool{}}
}

// Out records that the step on goroutine id, which has lasted for the duration held, is outside its scheduler.
func (s *Strays) Out(id int64, held time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &stray{since: time.Now().Add(-held), next: s.after}
	if x.told = held >= s.after; x.told { // Stalls has reported the step
		x.next = 2 * held
	}
	s.steps[id] = x
	s.setTimer(x.next - held)
}

// Back records that the step on goroutine id has ended.
func (s *Strays) Back(id int64) {
	if s != nil {
		s.mu.Lock()
		delete(s.steps, id)
		s.mu.Unlock()
	}
}

// setTimer makes the timer call s.inspect after the duration d, or earlier. The caller must hold s.mu.
func (s *Strays) setTimer(d time.Duration) {
	at := time.Now().Add(d)
	switch {
	case !s.at.IsZero() && s.at.Before(at):
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(d, s.inspect)
	default:
		s.timer.Reset(d)
	}
	s.at = at
}

// inspect reports the steps that are due. The timer calls it.
func (s *Strays) inspect() {
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
			first = min(first, s.after/8) // it is too early to print the stacks
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
				s.report(text) // no lock is held, because the report may close the scheduler
			}
		}
	}
}

// text returns the report about x. It returns nil if the step has ended or the line of code was reported for another step.
func (s *Strays) text(id int64, x *stray, now time.Time, stack []byte) []byte {
	at := lineOf(stack, program())
	if at == nil {
		at = lineOf(stack, []string{""})
	}
	key := string(at)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps[id] != x || suspended(stack) {
		return nil
	}
	if x.other = !x.told && s.lines[key]; x.other {
		return nil
	}
	s.lines[key] = true
	var b bytes.Buffer
	if x.told {
		fmt.Fprintf(&b, "still stalled after %v: ", now.Sub(x.since).Round(time.Millisecond))
	}
	x.told = true
	fmt.Fprintf(&b, "a task has not suspended for more than %v; its scheduler continues without it", s.after)
	if state := waitState(stack); !computes(state) {
		fmt.Fprintf(&b, "\na native wait in a task (%s): see suspend.Blocking and adapters/eventloop/README.md", state)
	}
	if at != nil {
		fmt.Fprintf(&b, "\nat %s", at)
	}
	fmt.Fprintf(&b, "\n%s", stack)
	return b.Bytes()
}

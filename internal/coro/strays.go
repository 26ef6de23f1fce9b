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

	looking atomicx.Mutex // held by look, which may stop the process for a while, so that two looks do not report the same step

	mu    atomicx.Mutex    // never held while stacks are printed, so that no step that goes out or comes back waits for them
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
	due, all := s.look(now)
	for id, stack := range all {
		if x := due[id]; x != nil {
			if text := s.text(id, x, now, stack); text != nil {
				s.report(text) // no lock is held, because the report may close the scheduler
			}
		}
	}
}

// look returns the steps that are due, and all stacks, and sets the timer again. There are no stacks if no step is due, or if it
// is too early to print them.
func (s *Strays) look(now time.Time) (due map[int64]*stray, all iter.Seq2[int64, []byte]) {
	s.looking.Lock()
	defer s.looking.Unlock()
	due, longest := s.due(now)
	isEarly := false
	if len(due) > 0 {
		all = stacks(longest)
		isEarly = all == nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if all == nil {
		all = func(func(int64, []byte) bool) {}
	} else {
		for _, x := range due {
			x.next = 2 * now.Sub(x.since)
		}
	}
	s.again(now, isEarly)
	return due, all
}

// due returns the steps that are due, and the duration of the longest.
func (s *Strays) due(now time.Time) (due map[int64]*stray, longest time.Duration) {
	due = map[int64]*stray{}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
	for id, x := range s.steps {
		if held := now.Sub(x.since); !x.other && held >= x.next {
			due[id] = x
			longest = max(longest, held)
		}
	}
	return due, longest
}

// again sets the timer for the next step that will be due; isEarly means that one is due already, and waits for its stack. The
// caller must hold s.mu.
func (s *Strays) again(now time.Time, isEarly bool) {
	first := time.Duration(math.MaxInt64)
	for _, x := range s.steps {
		if left := x.next - now.Sub(x.since); !x.other && left > 0 {
			first = min(first, left)
		}
	}
	if isEarly {
		first = min(first, s.after/8)
	}
	if first < math.MaxInt64 {
		s.setTimer(max(first, time.Millisecond))
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

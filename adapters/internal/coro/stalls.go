package coro

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
)

// Stalls watches one worker for a task that holds it too long. Nil watches nothing.
//
// The worker stores each step in one word. A timer looks at the word, twenty times in the time that a task may take,
// and counts for how long the word has been the same. While the worker is idle no timer runs: the first step after
// that sets it again.
type Stalls struct {
	after, every time.Duration
	report       func(text []byte)
	others       func() int64 // how many tasks wait behind the one that runs; may be nil
	waitsOnly    bool         // a task that computes is not reported

	step  atomicx.Uint64             // the goroutine of the task that runs and the number of its step; 0: none runs
	fresh atomicx.Pointer[Coroutine] // the task, if its goroutine was not known at the beginning of the step
	steps uint64                     // the worker's own
	idle  atomicx.Bool               // no timer is set

	again func() // setTimer

	mu      atomicx.Mutex
	timer   *time.Timer // made by the first step
	seen    uint64      // step, as it was at the last look
	since   time.Time   // when it was first seen so
	next    time.Duration
	stopped bool
}

const (
	defaultStallAfter = time.Second
	stepBits          = 24
	noGoroutine       = 0
)

// WatchStalls watches until Stop. Zero stands for the default of one second; a negative after watches nothing, and so
// does any in a testing/synctest bubble, where time passes only while everything waits. A task is reported when it has
// held its worker for after, or up to a twentieth more, and again whenever that time has doubled. A nil report writes
// to standard error.
func WatchStalls(after time.Duration, report func(text []byte)) *Stalls {
	if after < 0 || inBubble() {
		return nil
	}
	return newStalls(after, report)
}

// WatchWorker is WatchStalls for a worker that is there to compute: with the default a task is only reported if it waits
// natively.
func WatchWorker(after time.Duration, report func(text []byte)) *Stalls {
	s := WatchStalls(after, report)
	if s != nil {
		s.waitsOnly = after == 0
	}
	return s
}

func newStalls(after time.Duration, report func(text []byte)) *Stalls {
	if after == 0 {
		after = defaultStallAfter
	}
	if report == nil {
		report = func(text []byte) { fmt.Fprintf(os.Stderr, "%s\n", text) }
	}
	s := &Stalls{after: after, every: max(after/20, 250*time.Microsecond), report: report}
	s.again = s.setTimer
	s.idle.Store(true)
	return s
}

// Stop ends the watch.
func (s *Stalls) Stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// Others sets the number of tasks that wait behind the one that runs, for the report. It is called before the first Begin.
func (s *Stalls) Others(n func() int64) {
	if s != nil {
		s.others = n
	}
}

// Begin says that a step of c begins, on the worker that s watches. The step before has ended.
func (s *Stalls) Begin(c *Coroutine) {
	if s == nil {
		return
	}
	id := c.gid.Load()
	if id == noGoroutine { // the first step of a coroutine
		s.fresh.Store(c)
	}
	s.beginOn(id)
}

func (s *Stalls) beginOn(id int64) {
	s.steps++
	s.step.Store(uint64(id)<<stepBits | s.steps%(1<<stepBits-1) + 1)
	if s.idle.Load() { // after the store: pairs with look
		s.wake()
	}
}

// Another says that the task that runs has ended, and the next begins on its goroutine.
func (s *Stalls) Another() {
	if s != nil {
		s.beginOn(int64(s.step.Load() >> stepBits))
	}
}

// End says that the last step has ended and no new one has begun. The worker may sleep.
func (s *Stalls) End() {
	if s != nil {
		s.step.Store(0)
	}
}

// wake sets the timer again.
func (s *Stalls) wake() {
	if !s.idle.CompareAndSwap(true, false) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.step.Load(), time.Now())
	if !s.stopped {
		s.again()
	}
}

// setTimer makes the timer call look. The lock is held.
func (s *Stalls) setTimer() {
	if s.timer == nil {
		s.timer = time.AfterFunc(s.every, s.look)
	} else {
		s.timer.Reset(s.every)
	}
}

func (s *Stalls) note(step uint64, now time.Time) { s.seen, s.since, s.next = step, now, s.after }

// look is called by the timer.
func (s *Stalls) look() {
	if text := s.stalled(time.Now()); text != nil {
		s.report(text) // under no lock: it may close the scheduler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if s.step.Load() == 0 {
		s.idle.Store(true)
		// After the store: pairs with beginOn. A step that has begun just now may not have seen it.
		if s.step.Load() == 0 || !s.idle.CompareAndSwap(true, false) {
			return
		}
	}
	s.again()
}

// stalled returns the report that is due now, or nil.
func (s *Stalls) stalled(now time.Time) (text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := s.step.Load()
	held := now.Sub(s.since)
	switch {
	case step != s.seen:
		s.note(step, now)
		return nil
	case step == 0 || s.stopped || held < s.next:
		return nil
	}
	again := s.next > s.after
	s.next = 2 * held
	id := int64(step >> stepBits)
	if id == noGoroutine {
		id = s.fresh.Load().gid.Load()
	}
	stack := gid.Stack(id)
	state := waitState(stack)
	if s.step.Load() != step || stack == nil || state == "coroutine" { // it has given control back meanwhile
		return nil
	}
	if s.waitsOnly && computes(state) {
		return nil
	}
	return s.text(again, held, state, stack)
}

// text is the report: the event, the remedy, and the stack.
func (s *Stalls) text(again bool, held time.Duration, state string, stack []byte) []byte {
	var b bytes.Buffer
	if again {
		fmt.Fprintf(&b, "still, after %v: ", held.Round(s.every))
	}
	fmt.Fprintf(&b, "a task has held its scheduler for more than %v", s.after)
	if s.others != nil {
		fmt.Fprintf(&b, "; %d other tasks wait behind it", max(0, s.others()))
	}
	if !computes(state) {
		fmt.Fprintf(&b, "\na native wait in a task (%s): see suspend.Blocking", state)
	}
	fmt.Fprintf(&b, "\n%s", stack)
	return b.Bytes()
}

// waitState returns the state of a goroutine from the head of its stack trace.
func waitState(stack []byte) string {
	head, _, _ := bytes.Cut(stack, []byte{'\n'})
	_, head, _ = bytes.Cut(head, []byte{'['})
	end := bytes.IndexAny(head, ",]")
	if end < 0 {
		return ""
	}
	state, _, _ := bytes.Cut(head[:end], []byte(" ("))
	return string(state)
}

// computes reports whether a goroutine in this state would go on if it had a processor.
func computes(state string) bool {
	switch state {
	case "running", "runnable", "preempted":
		return true
	}
	return strings.HasPrefix(state, "GC ")
}

// inBubble reports whether the caller is in a testing/synctest bubble. Its clock begins in the year 2000, so outside
// of bubbles it is enough to look at the clock.
func inBubble() bool {
	if time.Now().Unix() > time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).Unix() {
		return false
	}
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return bytes.Contains(head, []byte("synctest bubble"))
}

package coro

import (
	"bytes"
	"iter"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A Stalls watches one worker for a task that holds it for too long. A nil Stalls watches nothing.
//
// A timer marks the worker's state as asked, forty times within the time that a task may take. The next step clears the
// mark. While the state stays asked, the same step is running, and the timer measures its time. Nearly all steps find
// no mark, and write nothing. -W> is the worker, -L> a look, which is a call of the method look by the timer:
//
//	none, asked    -W> running   a step begins
//	idle           -W> running   and this step sets the timer
//	running, asked -W> none      the worker may sleep
//	running        -L> asked     the step that runs now began before the look
//	asked          -L> asked     and still lasts
//	none           -L> idle      the timer is not set again
//
// Invariant: unless the state is idle or the Stalls is stopped, the timer is set or a look is running.
type Stalls struct {
	after, every time.Duration
	report       func(text []byte)
	others       func() int64 // returns how many tasks wait behind the running task; may be nil
	waitsOnly    bool         // tasks that compute are not reported
	about        func(goroutine int64, waits time.Duration) (task, remedy string)

	row     row
	answers func(now time.Time) // called by the worker when a step begins after a look; may be nil

	limit   func() time.Duration                   // how long a step may last until onLong is called, see Lasting
	onLong  func(held time.Duration) (enough bool) // may be nil
	enough  bool                                   // onLong has returned true in this step; only a look writes the field
	telling atomicx.Bool

	toldThread atomicx.Bool // see threadStays

	state atomicx.Uint32
	again func() // the method value s.setTimer

	mu      atomicx.Mutex
	timer   *time.Timer // made by the first step
	since   time.Time   // the time at which the state became asked
	next    time.Duration
	waitsAt []byte    // the frames in which the step waited natively at the last report, or nil
	waited  time.Time // the beginning of the wait at waitsAt, as far as it is known
	stopped bool
}

const (
	idle uint32 = iota
	none
	running
	asked
)

const (
	defaultStallAfter = time.Second
	unlimited         = math.MaxInt64 / 4 // the value of after in a Stalls that reports nothing
)

// WatchStalls returns a Stalls that watches a worker until Stop. A task is reported when it has held its worker for the
// duration after, or up to a fortieth longer, and again whenever that time has doubled. If report is nil, reports go to
// standard error. If after is 0, the limit is one second. If after is negative, WatchStalls returns nil. It also
// returns nil in a testing/synctest bubble, where time passes only while all goroutines wait.
func WatchStalls(after time.Duration, report func(text []byte)) *Stalls {
	if after < 0 || InBubble() {
		return nil
	}
	return newStalls(after, report)
}

// WatchWorker is like WatchStalls, for a worker whose tasks are meant to compute. If after is 0, a task is reported
// only if it waits natively.
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
	s := &Stalls{after: after, every: max(after/40, 250*time.Microsecond), report: Reports(after, report)}
	s.again = s.setTimer
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

// Rows makes s watch for rows of steps, too. q is the worker's queue, which must be first in, first out. s must not be
// nil. Rows must be called before the first Begin.
func (s *Stalls) Rows(q Queue) { s.row.queue = q }

// Others sets the function that returns how many tasks wait behind the running task, for the reports of s. s must not
// be nil. Others must be called before the first Begin.
func (s *Stalls) Others(n func() int64) {
	s.others = n
}

// Answers makes the worker call f when the first step after a look begins. s must not be nil. Answers must be called
// before the first Begin.
func (s *Stalls) Answers(f func(now time.Time)) { s.answers = f }

// About sets the function that names the task on a goroutine, and the remedy for its native wait, in the reports of s.
// The argument waits is the time for which all reports of the step have found the same native wait, or 0 in the first
// report. s must not be nil. About must be called before the first Begin. f is called on any goroutine, with the lock
// of s held.
func (s *Stalls) About(f func(goroutine int64, waits time.Duration) (task, remedy string)) {
	s.about = f
}

// Lasting makes s call the function onLong when a step has taken as long as the result of after, or up to twice as long,
// and then at each look until onLong returns true. The step may have ended before such a call. s calls the function
// after with its lock held. It calls onLong without a lock, but never concurrently. Lasting returns s, or if s is nil, a
// Stalls that reports nothing. In a testing/synctest bubble Lasting does nothing. It must be called before the first
// Begin.
func (s *Stalls) Lasting(after func() time.Duration, onLong func(held time.Duration) (enough bool)) *Stalls {
	if InBubble() {
		return s
	}
	if s == nil {
		s = newStalls(unlimited, nil)
	}
	s.limit, s.onLong = after, onLong
	return s
}

// Begin records that a step begins and that the previous step has ended. It must be called on the worker that s
// watches, for a coroutine that s watches.
func (s *Stalls) Begin() {
	if s != nil && s.state.Load() != running {
		s.beginSlow()
	}
}

//go:noinline
func (s *Stalls) beginSlow() {
	before := s.state.Swap(running)
	if before == idle {
		s.wake()
	}
	if before == asked {
		now := time.Now()
		s.answered(now)
		if s.answers != nil {
			s.answers(now)
		}
	}
}

// End records that the last step has ended and no new step has begun. After that the worker may sleep.
func (s *Stalls) End() {
	if s == nil {
		return
	}
	switch s.state.Load() {
	case running:
		s.state.Store(none)
	case asked:
		s.state.Store(none)
		s.answered(time.Now())
	}
}

// wake sets the timer again, unless s is stopped.
func (s *Stalls) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.again()
	}
}

// setTimer sets the time of the next look, which is at the latest the time at which the next report is due. The caller
// must hold s.mu.
func (s *Stalls) setTimer() {
	d := s.every
	if s.onLong != nil {
		look := max(s.limit()/2, 100*time.Microsecond)
		if s.enough {
			look *= 32
		}
		d = min(d, look)
	}
	if s.state.Load() == asked {
		if due := time.Until(s.since.Add(s.next)); due > 0 {
			d = min(d, due)
		}
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.inspect)
	} else {
		s.timer.Reset(d)
	}
}

// inspect checks the worker, and reports a step or a row that is due. The timer calls it.
func (s *Stalls) inspect() {
	now := time.Now()
	text := s.stalled(now)
	if s.onLong != nil && !s.enough {
		if held := s.held(now); held > 0 && held >= s.limit() {
			s.enough = s.onLong(held)
		}
	}
	if text != nil {
		s.pass(text)
	}
	if s.state.CompareAndSwap(none, idle) {
		return
	}
	s.wake()
}

// pass gives a report to s.report. The caller must hold no lock, because s.report may close the scheduler. If s.onLong
// is set, a report that blocks must not delay the next look, so the report gets its own goroutine. While that goroutine
// runs, further reports are dropped.
func (s *Stalls) pass(text []byte) {
	switch {
	case s.onLong == nil:
		s.report(text)
	case s.telling.CompareAndSwap(false, true):
		go func() {
			defer s.telling.Store(false)
			s.report(text)
		}()
	}
}

// held returns how long the current step has lasted since the state became asked, or 0 if that step has ended.
func (s *Stalls) held(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.state.Load() != asked {
		return 0
	}
	return now.Sub(s.since)
}

// Lasts reports whether the current step has lasted for the time that Lasting set.
func (s *Stalls) Lasts() bool { return s.held(time.Now()) >= s.limit() }

// Waits returns those workers in the map all whose current step has lasted long enough (see Lasts) and waits natively.
// A wait for one of Braid's own locks does not count, because it is short. The argument held is the time that one of
// the steps has lasted. Waits returns nil if it is too early to print the stacks.
func Waits[W any](held time.Duration, all map[*Stalls]W) (ws []W) {
	stacks := stacks(held)
	if stacks == nil {
		return nil
	}
	tasks, now := map[int64]*Stalls{}, time.Now()
	begun.mu.Lock()
	for n := begun.all.First(); n != nil; n = n.Next() {
		if s := n.Value.watch.Load(); s != nil {
			if _, ok := all[s]; ok {
				tasks[n.Value.ID()] = s
			}
		}
	}
	begun.mu.Unlock()
	for id, stack := range stacks {
		s := tasks[id]
		if s == nil || s.held(now) < s.limit() {
			continue
		}
		if !suspended(stack) && !computes(waitState(stack)) && !ours(stack) {
			ws = append(ws, all[s])
		}
	}
	return ws
}

// ours reports whether the innermost function of a stack trace, apart from Go's locks, belongs to Braid's schedulers,
// its internal packages or package suspend.
func ours(stack []byte) bool {
	lines := bytes.Split(stack, []byte{'\n'})
	for _, line := range lines[1:] {
		line = bytes.TrimPrefix(line, []byte("internal/"))
		if bytes.HasPrefix(line, []byte("sync.")) || bytes.HasPrefix(line, []byte("runtime.")) || bytes.HasPrefix(line, []byte{'\t'}) {
			continue
		}
		path, braid := bytes.CutPrefix(line, []byte("github.com/braidgo/braid/"))
		return braid && slices.ContainsFunc([]string{"adapters/workstealing.", "adapters/internal/", "internal/", "suspend."}, func(own string) bool {
			return bytes.HasPrefix(path, []byte(own))
		})
	}
	return false
}

// stalled marks the state as asked, or returns the report that is due. If no report is due, it returns nil.
func (s *Stalls) stalled(now time.Time) (text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text := s.rowLocked(now); text != nil {
		return text
	}
	if s.state.CompareAndSwap(running, asked) {
		s.since, s.next, s.enough = now, s.after, false
		return nil
	}
	held := now.Sub(s.since)
	if s.state.Load() != asked || s.stopped || held < s.next {
		return nil
	}
	stacks := stacks(held)
	if stacks == nil { // a later look will report the step
		return nil
	}
	again := s.next > s.after
	s.next = 2 * held
	id, stack := s.running(stacks)
	if at := waitPlace(stack); !again {
		s.waitsAt, s.waited = bytes.Clone(at), s.since // cloned, because the slice at is part of the stacks of all goroutines
	} else if !bytes.Equal(at, s.waitsAt) {
		s.waitsAt, s.waited = bytes.Clone(at), now
	}
	if s.state.Load() != asked || stack == nil { // the task has given control back
		return nil
	}
	if s.waitsOnly && computes(waitState(stack)) {
		return nil
	}
	return s.text("has held its scheduler", again, held, id, stack)
}

// running returns the goroutine of the task that the worker runs, and its stack trace. The stack trace is nil if the
// task has given control back, to the worker or to a coroutine that the task has made itself.
func (s *Stalls) running(stacks iter.Seq2[int64, []byte]) (id int64, stack []byte) {
	ids := map[int64]bool{}
	begun.mu.Lock()
	for n := begun.all.First(); n != nil; n = n.Next() {
		if n.Value.watch.Load() == s {
			ids[n.Value.ID()] = true
		}
	}
	begun.mu.Unlock()
	for id, stack := range stacks {
		if ids[id] && !suspended(stack) {
			return id, stack
		}
	}
	return 0, nil
}

// InBubble reports whether the caller is in a testing/synctest bubble. The clock of a bubble starts in the year 2000,
// so outside bubbles it is enough to read the clock.
func InBubble() bool {
	if time.Now().Unix() > time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).Unix() {
		return false
	}
	var buf [128]byte
	head, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte{'\n'})
	return bytes.Contains(head, []byte("synctest bubble"))
}

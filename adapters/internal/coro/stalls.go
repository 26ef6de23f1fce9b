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

// Stalls watches one worker for a task that holds it too long. Nil watches nothing.
//
// A timer marks the worker's state as asked, forty times in the time that a task may take. The next step clears the
// mark. As long as it does not, one step lasts, and the timer counts. Nearly all steps find nothing asked, and write
// nothing. -W> is the worker, -L> a look of the timer:
//
//	none, asked    -W> running   a step begins
//	idle           -W> running   and this step sets the timer
//	running, asked -W> none      the worker may sleep
//	running        -L> asked     the step that runs now has begun before
//	asked          -L> asked     and still lasts
//	none           -L> idle      the timer is not set again
//
// Invariant: unless it is idle or stopped, the timer is set or looks.
type Stalls struct {
	after, every time.Duration
	report       func(text []byte)
	others       func() int64 // how many tasks wait behind the running task; may be nil
	waitsOnly    bool         // a task that computes is not reported
	about        func(goroutine int64, waits time.Duration) (task, remedy string)

	row     row
	answers func(now time.Time) // the worker calls it at a step that begins after a look; may be nil

	lasting func() time.Duration // see Lasting; nil means that lasts is not called
	lasts   func(held time.Duration) (enough bool)
	enough  bool // lasts needs no more calls in this step; looks write it, one after another
	telling atomicx.Bool

	state atomicx.Uint32
	again func() // setTimer

	mu      atomicx.Mutex
	timer   *time.Timer // made by the first step
	since   time.Time   // when it was asked
	next    time.Duration
	waitsAt []byte    // where the step waits natively, by the last report; nil: it did not
	waited  time.Time // the time of the first such report
	stopped bool
}

const (
	idle uint32 = iota
	none
	running
	asked
)

const defaultStallAfter = time.Second

// WatchStalls watches until Stop. Zero means the default of one second; a negative after watches nothing, and so does
// any in a testing/synctest bubble, where time passes only while everything waits. A task is reported when it has held
// its worker for after, or up to a fortieth more, and again whenever that time has doubled. A nil report writes to
// standard error.
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

// Rows sets the queue of the worker, in order: Stalls then watches rows of steps, too. s is not nil. Rows is called before
// the first Begin, and its functions on the worker.
func (s *Stalls) Rows(passed, waiting func() int) { s.row.passed, s.row.waiting = passed, waiting }

// Others sets the number of tasks that wait behind the running task, for the report of s. s is not nil. Others is
// called before the first Begin.
func (s *Stalls) Others(n func() int64) {
	s.others = n
}

// Answers makes s call f at each look while the worker is busy, by the worker, where its next step begins. s is not nil. Answers is called
// before the first Begin.
func (s *Stalls) Answers(f func(now time.Time)) { s.answers = f }

// About sets the name of the task on a goroutine, and what to do about a native wait, for the reports of s. waits is for how long all
// reports of the step have found it in the same native wait, and 0 in the first. s is not nil. About is called before the first Begin, and
// f on any goroutine, under the lock of s.
func (s *Stalls) About(f func(goroutine int64, waits time.Duration) (task, remedy string)) {
	s.about = f
}

// Lasting makes s call lasts once a step has lasted for after, or up to twice as long, and at each look from then on,
// until lasts returns true. The step may have ended by then. after is called under the lock of s, lasts under none, but
// never concurrently. Lasting returns s, or where s is nil a Stalls that reports nothing. In a bubble it does nothing.
// It is called before the first Begin.
func (s *Stalls) Lasting(after func() time.Duration, lasts func(held time.Duration) (enough bool)) *Stalls {
	if inBubble() {
		return s
	}
	if s == nil {
		s = newStalls(math.MaxInt64/4, nil)
	}
	s.lasting, s.lasts = after, lasts
	return s
}

// Begin says that a step begins, on the worker that s watches, of a coroutine that s watches. The step before has ended.
func (s *Stalls) Begin() {
	if s != nil && s.state.Load() != running {
		s.begin()
	}
}

//go:noinline
func (s *Stalls) begin() {
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

// End says that the last step has ended and no new one has begun. The worker may sleep.
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

// wake sets the timer again.
func (s *Stalls) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.again()
	}
}

// setTimer makes the timer call look: soon, and when a report is due. The lock is held.
func (s *Stalls) setTimer() {
	d := s.every
	if s.lasts != nil {
		look := max(s.lasting()/2, 100*time.Microsecond)
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
		s.timer = time.AfterFunc(d, s.look)
	} else {
		s.timer.Reset(d)
	}
}

// look is called by the timer.
func (s *Stalls) look() {
	now := time.Now()
	text := s.stalled(now)
	if s.lasts != nil && !s.enough {
		if held := s.held(now); held > 0 && held >= s.lasting() {
			s.enough = s.lasts(held)
		}
	}
	if text != nil {
		s.tell(text)
	}
	if s.state.CompareAndSwap(none, idle) {
		return
	}
	s.wake()
}

// tell reports, under no lock: the report may close the scheduler. If lasting is set, a report that blocks must not
// hold up the next look: it gets a goroutine, and while that runs further reports are dropped.
func (s *Stalls) tell(text []byte) {
	switch {
	case s.lasts == nil:
		s.report(text)
	case s.telling.CompareAndSwap(false, true):
		go func() {
			defer s.telling.Store(false)
			s.report(text)
		}()
	}
}

// held returns how long the step has lasted that was asked last, 0 if it has ended.
func (s *Stalls) held(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.state.Load() != asked {
		return 0
	}
	return now.Sub(s.since)
}

// Lasts reports whether a step lasts, as said by Lasting.
func (s *Stalls) Lasts() bool { return s.held(time.Now()) >= s.lasting() }

// Waits returns the workers watched by all whose step lasts, as said by Lasting, and waits natively: not for a lock of
// Braid's own, which is a matter of a moment. A step has lasted for held. Waits returns none if it is too early for
// another look at the stacks.
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
		if s == nil || s.held(now) < s.lasting() {
			continue
		}
		if state := waitState(stack); state != "coroutine" && !computes(state) && !ours(stack) {
			ws = append(ws, all[s])
		}
	}
	return ws
}

// ours reports whether the innermost function of a stack trace, apart from Go's locks, belongs to Braid's schedulers or
// the waist.
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

// stalled marks the state as asked, or returns the report that is due now. Otherwise it returns nil.
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
	if stacks == nil { // later
		return nil
	}
	again := s.next > s.after
	s.next = 2 * held
	id, stack := s.running(stacks)
	if at := waitPlace(stack); !again {
		s.waitsAt, s.waited = bytes.Clone(at), s.since // a part of the stacks of all goroutines
	} else if !bytes.Equal(at, s.waitsAt) {
		s.waitsAt, s.waited = bytes.Clone(at), now
	}
	if s.state.Load() != asked || stack == nil { // it has given control back
		return nil
	}
	if s.waitsOnly && computes(waitState(stack)) {
		return nil
	}
	return s.text("has held its scheduler", again, held, id, stack)
}

// running returns the goroutine of the task that the worker runs, and its stack trace. There is none if the task
// has given control back, to the worker or to a coroutine that the task has made itself.
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
		if ids[id] && waitState(stack) != "coroutine" {
			return id, stack
		}
	}
	return 0, nil
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

package coro

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A row is the other way to hold up a worker: no step lasts for long, but there are many, and they wait natively. What
// counts is the time that a task has to wait which becomes runnable now. So the worker remembers the end of its queue,
// when it is asked anyway, and notices if it has not come so far after the limit.
//
// Computing that shares the worker in normal turns is no stall, so two looks in a row have to find a native wait. A queue
// that moves as fast as queues do is not counted.
type row struct {
	passed  func() int // counts the entries taken off the queue; nil means that rows are not watched
	waiting func() int // entries in the queue

	late atomicx.Bool // the mark is due, and has not been passed

	// Under the lock of the Stalls.
	last    int       // passed, when it was asked before
	asked   time.Time // then
	mark    int       // the end of the queue, as passed will say
	marked  time.Time // when that was the end
	next    time.Duration
	natives int       // native waits that looks have found since then
	looked  time.Time // the last look for a row
}

// slowly is the time of a step from which on a queue is counted.
const slowly = 100 * time.Microsecond

// answered is called by the worker when it has been asked.
func (s *Stalls) answered(now time.Time) {
	r := &s.row
	if r.passed == nil {
		return
	}
	passed := r.passed()
	s.mu.Lock()
	defer s.mu.Unlock()
	moved, took := passed-r.last, now.Sub(r.asked)
	r.last, r.asked = passed, now
	switch {
	case time.Duration(moved)*slowly > took:
		r.set(passed, now, s.after)
	case passed >= r.mark:
		r.set(passed+r.waiting(), now, s.after)
	case now.Sub(r.marked) >= r.next:
		r.late.Store(true)
	}
}

func (r *row) set(mark int, now time.Time, after time.Duration) {
	r.mark, r.marked, r.next, r.natives = mark, now, after, 0
	r.late.Store(false)
}

// Slept says that the queue is empty.
func (s *Stalls) Slept() {
	if s != nil && s.row.late.Load() {
		s.row.late.Store(false)
	}
}

// rowLocked returns the report of a row that is due now, or nil.
func (s *Stalls) rowLocked(now time.Time) []byte {
	r := &s.row
	if !r.late.Load() || s.stopped || now.Sub(r.looked) < s.every/2 {
		return nil
	}
	stacks := stacks(now.Sub(r.marked))
	if stacks == nil {
		return nil
	}
	r.looked = now
	_, stack := s.running(stacks)
	switch {
	case stack == nil: // between two steps
		return nil
	case computes(waitState(stack)):
		r.natives, r.next = 0, 2*r.next
		r.late.Store(false)
		return nil
	}
	if r.natives++; r.natives < 2 {
		return nil
	}
	again := r.next > s.after
	held := r.asked.Sub(r.marked)
	r.natives, r.next = 0, 2*held
	r.late.Store(false)
	return s.text("tasks have held their scheduler, one after another,", again, held, 0, stack)
}

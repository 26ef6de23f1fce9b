package coro

import (
	"time"

	"github.com/braidgo/braid/internal/atomicx"
)

// A row is a sequence of steps that together hold a worker for too long. Each step is short, but there are many, and
// they wait natively. The measure of a row is the waiting time of a task that becomes runnable now. So when a look has
// marked the state as asked, the worker sets a mark at the end of its queue. The row is late if the worker has not
// reached this mark within the limit.
//
// Tasks that compute and share the worker in normal turns are not a row, so two consecutive looks must find a native
// wait. Nor are tasks a row if their queue moves at a normal speed.
type row struct {
	queue Queue // is nil if rows are not watched

	late atomicx.Bool // the mark was not reached within the limit

	// The lock of the Stalls guards the fields below.
	last    int       // the result of queue.Passed at the last call of answered()
	asked   time.Time // the time of the last call of answered()
	mark    int       // the result of queue.Passed when the worker reaches the mark
	marked  time.Time // the time at which the mark was set
	next    time.Duration
	natives int       // counts the native waits that looks have found since the mark was set
	looked  time.Time // the time at which the stacks were last searched for a row
}

// A Queue is the queue of a worker. The worker calls its methods. It is an interface, because the functions would take
// two allocations for each Run of a scheduler.
type Queue interface {
	Passed() int  // returns how many entries were taken off the queue
	Waiting() int // returns how many entries are in the queue
}

// slowly is the average step time below which a queue moves at a normal speed.
const slowly = 100 * time.Microsecond

// answered updates the mark. The worker calls it after a look has marked the state as asked. It does nothing during a look, which may
// take a long time, because it prints the stacks of all goroutines: the worker must not wait for it, and the next look asks again.
func (s *Stalls) answered(now time.Time) {
	r := &s.row
	if r.queue == nil {
		return
	}
	passed := r.queue.Passed()
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	moved, took := passed-r.last, now.Sub(r.asked)
	r.last, r.asked = passed, now
	switch {
	case time.Duration(moved)*slowly > took:
		r.set(passed, now, s.after)
	case passed >= r.mark:
		r.set(passed+r.queue.Waiting(), now, s.after)
	case now.Sub(r.marked) >= r.next:
		r.late.Store(true)
	}
}

func (r *row) set(mark int, now time.Time, after time.Duration) {
	r.mark, r.marked, r.next, r.natives = mark, now, after, 0
	r.late.Store(false)
}

// Slept records that the queue is empty.
func (s *Stalls) Slept() {
	if s != nil && s.row.late.Load() {
		s.row.late.Store(false)
	}
}

// rowLocked returns the report of a row if one is due, or nil.
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
	case stack == nil: // the worker is between two steps
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

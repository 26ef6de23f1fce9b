package eventloop

import (
	"context"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A share is how a reactor's time is divided. Between two looks at descriptors and timers it runs tasks for one turn:
// 64 steps, or until an operation finds that the turn has lasted a millisecond. A task whose operations never have to
// wait uses up its share and rests. When nothing else is runnable, and after every eighth turn in any case, the task
// that has rested longest goes on. So a task that an event has woken waits for about one turn, however many connections
// are busy.
//
// It belongs to the core.
type share struct {
	began   int64 // when the turn began
	step    int   // the core's step of the last operation
	ops     int   // operations in that step
	turns   int   // counts turns since a resting task went on
	rest    int   // tasks that rest, or are about to
	guard   suspend.Guard
	resting suspend.Queue[struct{}, struct{}]
}

const (
	turnLasts = int64(time.Millisecond)
	fewOps    = 3  // operations of a step without a look at the clock
	manyOps   = 64 // operations of a step after which a task rests in any case
	restLasts = 8  // turns at most until the first resting task goes on
)

// pace is called by each operation before it begins. On the reactor it may suspend; elsewhere it reports false.
func (r *reactor) pace() (here bool) {
	if !r.core.Enter() {
		return false
	}
	s := &r.share
	if step := r.core.Step(); step != s.step {
		s.step, s.ops = step, 0
	}
	s.ops++
	if s.ops < fewOps || s.ops < manyOps && r.loop.now()-s.began < turnLasts || suspend.Current() == nil { // a callback
		r.core.Exit()
		return true
	}
	r.core.EndTurn()
	s.rest++
	r.core.Exit()
	_, _ = suspend.Wait[struct{}](context.Background(), s, false)
	return true
}

// resumeRested lets the task that has rested longest go on, if it is its turn, and reports whether any rests.
func (r *reactor) resumeRested() bool {
	s := &r.share
	if s.rest == 0 {
		return false
	}
	if s.turns++; s.turns < restLasts && !r.core.Empty() {
		return true
	}
	s.turns = 0
	s.guard.Lock()
	if _, ok := s.resting.Resume(struct{}{}, nil); ok {
		s.rest--
	}
	s.guard.Unlock()
	return true
}

// Guard implements suspend.Source, as do the methods below.
func (s *share) Guard() *suspend.Guard { return &s.guard }

// Try reports false: the share is used up.
func (s *share) Try() (none struct{}, ok bool, err error) { return none, false, nil }

// Enqueue queues the task.
func (s *share) Enqueue(r suspend.Resumer[struct{}]) { s.resting.Push(r, struct{}{}) }

// Remove takes the task off.
func (s *share) Remove(r suspend.Resumer[struct{}]) { s.resting.Remove(r) }

package eventloop

import (
	"context"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A share records how a reactor divides its time. Between two polls of descriptors and timers, the reactor runs tasks
// for one turn. A turn ends after 64 steps, or with the step in which an operation finds that the turn has lasted a
// millisecond. A task whose operations never have to wait uses up its share after a millisecond, and then rests: it
// suspends until the reactor resumes it. The task that has rested longest resumes when nothing else is runnable, and also
// after every eighth turn. So a task that was woken by an event waits for the tasks that were woken before it, but hardly
// for tasks whose connections are always busy, however many they are.
//
// Only the time of the task's own step uses up the share. If the time of the turn did, the last tasks of each turn would
// rest, and a request that needs a few operations would sometimes take twenty times as long as another.
//
// Only the owner of the reactor's core may access a share.
type share struct {
	began   int64 // when the turn began
	step    int   // the step in which the last operation began
	ops     int   // operations in that step
	since   int64 // when the first of them began that has read the clock
	turns   int   // turns since a resting task was last resumed
	rest    int   // tasks that rest, or are about to rest
	guard   suspend.Guard
	resting suspend.Queue[struct{}, struct{}]
}

const (
	turnLasts = int64(time.Millisecond)
	fewOps    = 3  // operations in a step before pace reads the clock
	manyOps   = 64 // operations in a step after which the task always rests
	restLasts = 8  // maximum number of turns until a resting task is resumed
)

// pace is called before each operation. If the caller runs on the reactor, pace returns true, and may first suspend the
// task. Otherwise pace returns false.
func (r *reactor) pace() (here bool) {
	if !r.core.Enter() {
		return false
	}
	s := &r.share
	if step := r.core.Step(); step != s.step {
		s.step, s.ops = step, 0
	}
	s.ops++
	if s.ops < fewOps || !r.usedUp() || suspend.Current() == nil { // a callback cannot rest
		r.core.Exit()
		return true
	}
	s.rest++
	r.core.Exit()
	_, _ = suspend.Wait[struct{}](context.Background(), s)
	return true
}

// usedUp reports whether the running task has used up its share. It also ends the turn if the turn has lasted long enough.
func (r *reactor) usedUp() bool {
	s, now := &r.share, r.loop.now()
	if s.ops == fewOps {
		s.since = now
	}
	used := s.ops >= manyOps || now-s.since >= turnLasts
	if used || now-s.began >= turnLasts {
		r.core.EndTurn()
	}
	return used
}

// resumeRested resumes the task that has rested longest, if that task is due, and reports whether there was a resting
// task.
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

// Guard, Try, Enqueue and Remove implement suspend.Source.
func (s *share) Guard() *suspend.Guard { return &s.guard }

// Try returns false, because the task has used up its share.
func (s *share) Try() (none struct{}, ok bool, err error) { return none, false, nil }

// Enqueue adds the task to the queue.
func (s *share) Enqueue(r suspend.Resumer[struct{}]) { s.resting.Push(r, struct{}{}) }

// Remove removes the task from the queue.
func (s *share) Remove(r suspend.Resumer[struct{}]) { s.resting.Remove(r) }

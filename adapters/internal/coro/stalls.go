package coro

import (
	"fmt"
	"os"
	"time"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/gid"
)

// Stalls watches one worker for a task that holds it too long. Nil watches nothing.
type Stalls struct {
	after  time.Duration
	report func(stack []byte)
	steps  atomicx.Uint64 // odd while a task runs
	task   atomicx.Pointer[Task]
	timer  *time.Timer

	mu             atomicx.Mutex // of the timer's callbacks
	seen, reported uint64
	stopped        bool
}

// WatchStalls watches until Stop; it returns nil if after is zero. A task is reported once for each time that it
// holds its worker, at the latest when twice that time has passed. A nil report writes to standard error.
func WatchStalls(after time.Duration, report func(stack []byte)) *Stalls {
	if after <= 0 {
		return nil
	}
	if report == nil {
		report = func(stack []byte) {
			fmt.Fprintf(os.Stderr, "a task has held its scheduler for more than %v:\n%s\n", after, stack)
		}
	}
	s := &Stalls{after: after, report: report}
	s.mu.Lock()
	s.timer = time.AfterFunc(after, s.look)
	s.mu.Unlock()
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
	s.timer.Stop()
}

func (s *Stalls) begin(t *Task) {
	if s == nil {
		return
	}
	s.task.Store(t)
	s.steps.Add(1)
}

func (s *Stalls) end() {
	if s != nil {
		s.steps.Add(1)
	}
}

// another is end and begin, on one goroutine.
func (s *Stalls) another() {
	if s != nil {
		s.steps.Add(2)
	}
}

func (s *Stalls) look() {
	if stack := s.stalled(); stack != nil {
		s.report(stack) // under no lock: it may close the scheduler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.timer.Reset(s.after)
	}
}

// stalled returns the stack of a task that has run since the last look, and has not been reported, nil if there is none.
func (s *Stalls) stalled() (stack []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.steps.Load()
	stalled := now%2 == 1 && now == s.seen && now != s.reported
	s.seen = now
	if !stalled || s.stopped {
		return nil
	}
	stack = gid.Stack(s.task.Load().gid.Load())
	if s.steps.Load() != now { // it has moved on while the world was being looked at
		return nil
	}
	s.reported = now
	return stack
}

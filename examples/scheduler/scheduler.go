// Scheduler is a complete scheduler for Braid. Its tasks are coroutines that take turns on the goroutine that calls Run.
//
//	go run ./examples/scheduler     # two tasks and a goroutine share a mutex and a channel
//	go test ./examples/scheduler    # runs the conformance kit
//
// The program does only what every scheduler must do. Package adapters/fifo is an optimised version of this scheduler.
package main

import (
	"iter"
	"sync"

	"github.com/braidgo/braid/suspend"
)

// A Scheduler runs tasks in the order in which they become runnable.
type Scheduler struct {
	mu     sync.Mutex
	change sync.Cond // signalled when ready or closed has changed
	ready  []*task
	live   int // the number of tasks that have not ended
	closed bool
}

// A task is a coroutine. The scheduler switches to a task by calling its function next, and the task switches back by calling yield.
type task struct {
	s      *Scheduler
	next   func() (struct{}, bool)
	yield  func(struct{}) bool
	parked bool // guarded by s.mu; the task waits for an Unpark
	permit bool // guarded by s.mu; Unpark was called before Park
}

// New returns a Scheduler without tasks.
func New() *Scheduler {
	s := &Scheduler{}
	s.change.L = &s.mu
	return s
}

// Go starts f as a task. It may be called from any goroutine, and returns [suspend.ErrClosed] after Close.
func (s *Scheduler) Go(f func()) error {
	t := &task{s: s}
	t.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		exited := true
		defer func() {
			if p := recover(); p != nil {
				panic(p)
			} else if exited {
				panic(goexit)
			}
		}()
		suspend.Bind(t, f) // each wait in f parks t
		exited = false
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return suspend.ErrClosed
	}
	s.live++
	s.pushLocked(t)
	return nil
}

// goexit is the value with which a task panics after a runtime.Goexit. Otherwise iter.Pull would repeat the Goexit on the goroutine that
// calls Run.
var goexit any = "runtime.Goexit"

// step runs t until t parks, yields or ends, and reports whether t is suspended.
func (t *task) step() (suspended bool) {
	defer func() {
		if p := recover(); p != nil && p != goexit {
			panic(p)
		}
	}()
	_, suspended = t.next()
	return suspended
}

// Run runs tasks until Close has been called and all tasks have ended.
func (s *Scheduler) Run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.ready) == 0 {
			if s.closed && s.live == 0 {
				return
			}
			s.change.Wait()
		}
		t := s.ready[0]
		s.ready = s.ready[1:]
		s.mu.Unlock()
		suspended := t.step()
		s.mu.Lock()
		if !suspended {
			s.live--
		}
	}
}

// Close makes Go return an error, and lets Run return when all tasks have ended. The error is always nil.
func (s *Scheduler) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.change.Broadcast()
	return nil
}

// Park suspends the calling task t until Unpark is called. If Unpark has been called before, Park returns at once.
func (t *task) Park() {
	t.s.mu.Lock()
	t.parked = !t.permit
	t.permit = false
	parked := t.parked
	t.s.mu.Unlock()
	if parked {
		t.yield(struct{}{}) // an earlier Unpark only queues t, because Run is still in t.next
	}
}

// Unpark makes t runnable. It may be called from any goroutine, and neither blocks nor runs t.
func (t *task) Unpark() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.parked {
		t.parked = false
		t.s.pushLocked(t)
	} else {
		t.permit = true
	}
}

// Yield lets the other runnable tasks run first.
func (t *task) Yield() {
	t.s.mu.Lock()
	t.s.pushLocked(t)
	t.s.mu.Unlock()
	t.yield(struct{}{})
}

// Spawner returns the scheduler of t.
func (t *task) Spawner() suspend.Spawner { return t.s }

func (s *Scheduler) pushLocked(t *task) {
	s.ready = append(s.ready, t)
	s.change.Signal()
}

// A whole scheduler for Braid: tasks are coroutines that take turns on the goroutine that calls Run. Read it first.
//
//	go run ./examples/scheduler     # two tasks of it and a goroutine share a mutex and a channel
//	go test ./examples/scheduler    # the conformance kit
//
// It keeps the promises of every scheduler, but no more. adapters/fifo is this scheduler with everything that makes it fast.
package main

import (
	"iter"
	"sync"

	"github.com/braidgo/braid/suspend"
)

// A Scheduler runs tasks in the order in which they become runnable.
type Scheduler struct {
	mu     sync.Mutex
	change sync.Cond // ready, live or closed has changed
	ready  []*task
	live   int // tasks that have not ended
	closed bool
}

// A task is a coroutine. Its scheduler switches to it with next, and it switches back with yield.
type task struct {
	s      *Scheduler
	next   func() (struct{}, bool)
	yield  func(struct{}) bool
	parked bool // guarded by s.mu: waits for an Unpark
	permit bool // guarded by s.mu: an Unpark came first
}

// New returns a Scheduler without tasks.
func New() *Scheduler {
	s := &Scheduler{}
	s.change.L = &s.mu
	return s
}

// Go starts f as a task, from any goroutine. After Close it returns [suspend.ErrClosed].
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
		suspend.Bind(t, f) // a wait in f parks t
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

// goexit replaces a runtime.Goexit in a task, which iter.Pull would repeat on the goroutine of Run otherwise.
var goexit any = "runtime.Goexit"

// step switches to t, until it parks, yields or ends.
func (t *task) step() (suspended bool) {
	defer func() {
		if p := recover(); p != nil && p != goexit {
			panic(p)
		}
	}()
	_, suspended = t.next()
	return suspended
}

// Run runs tasks until Close has been called and the last of them has ended.
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

// Close refuses new tasks, and lets Run return.
func (s *Scheduler) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.change.Broadcast()
}

// Park suspends t, which calls it, until an Unpark. An Unpark that came first counts.
func (t *task) Park() {
	t.s.mu.Lock()
	t.parked = !t.permit
	t.permit = false
	parked := t.parked
	t.s.mu.Unlock()
	if parked {
		t.yield(struct{}{}) // an Unpark has its effect only after this: Run is in t.next
	}
}

// Unpark makes t runnable, from any goroutine, and neither blocks nor runs it.
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

// Yield lets the other runnable tasks go first.
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

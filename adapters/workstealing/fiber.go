package workstealing

import (
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/coro"
	"github.com/braidgo/braid/suspend"
)

// A fiber is a coroutine of the pool. It runs a task, a callback or a fork from a deque. Any worker may resume it.
//
// The state of a fiber determines the effect of an Unpark. -T> is the task, -W> the worker that runs the task, -U> an
// Unpark.
//
//	active -W> parked   only after the switch back to the worker: from now on another may run it
//	parked -U> active   and the waker queues the fiber
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
//	woken  -W> active   instead of parked: the worker queues the fiber
//
// Invariant: only a task that is inside Park becomes parked. A late Unpark may find the task queued, running or ended,
// or may find the next task of the same fiber. Such an Unpark leaves a permit behind and changes nothing else.
type fiber struct {
	coro.Coroutine
	state   atomicx.Uint32
	counted bool // whether the fiber counts in Pool.live, as tasks and callbacks do, but not forks
	pool    *Pool
	worker  *worker // the worker that runs the fiber or ran it last; set by that worker before it resumes the fiber
	call    func()  // the callback that the method runCall is about to run
	base    uint64  // the bottom of the worker's deque when the worker resumed the fiber
	carried *fork   // the forks that are off the deque while the fiber is runnable, oldest first
	turns   uint    // turns since the fiber last gave way
	yields  uint    // yields of the fiber while it had forks
	gave    bool    // the fiber is giving way
	joins   bool    // the fiber waits for a fork, or is about to wait
	callFn  func()  // the method value s.runCall, made when it is first needed
}

const (
	active uint32 = iota
	parked
	woken
)

// commit parks a task that has switched to the worker in order to park. It returns false if the task was woken first
// and is runnable.
func (s *fiber) commit() bool {
	if s.state.CompareAndSwap(active, parked) {
		return true
	}
	s.state.Store(active) // an Unpark does not change the state of a woken task
	return false
}

// Unpark implements suspend.Task.
func (s *fiber) Unpark() {
	for {
		switch s.state.Load() {
		case parked:
			if s.state.CompareAndSwap(parked, active) {
				s.pool.enqueue(entry{fiber: s, woken: true})
				return
			}
		case active:
			if s.state.CompareAndSwap(active, woken) {
				return
			}
		default:
			return
		}
	}
}

// Leave implements sched.Switcher.
func (s *fiber) Leave() (next coro.Next, yield coro.Yield) {
	yield = s.Coroutine.Leave(coro.Parked)
	if s.permitted() {
		return nil, nil
	}
	return nil, yield
}

// permitted takes the permit, and reports whether there was one.
func (s *fiber) permitted() bool {
	if s.state.Load() != woken {
		return false
	}
	s.state.Store(active)
	return true
}

// LeaveReady implements sched.Switcher.
func (s *fiber) LeaveReady() (next coro.Next, yield coro.Yield) {
	return nil, s.Coroutine.Leave(coro.Yielded)
}

// Back implements sched.Switcher. It is never called, because Leave always returns a nil next.
func (s *fiber) Back() (next coro.Next, yield coro.Yield) { return nil, nil }

// Spawner returns the pool.
func (s *fiber) Spawner() suspend.Spawner { return s.pool }

// Another implements coro.Owner. The fiber of a task or a callback that has ended begins the next new entry, which saves
// two switches for each: to the worker and back. The worker counts the last entry as ended.
func (s *fiber) Another() func() {
	if !s.counted { // it has run a fork
		return nil
	}
	w := s.worker
	e, ok := w.pickNew()
	if !ok {
		return nil
	}
	w.pool.ended(w.part)
	w.stalls.Begin()
	return s.function(e)
}

// function returns the function that s must run for e, a task or a callback. The function of a task is the task's own,
// because each frame between the coroutine and a task that waits costs memory.
func (s *fiber) function(e entry) func() {
	if !e.call {
		return e.f
	}
	if s.callFn == nil {
		s.callFn = s.runCall
	}
	s.call = e.f
	return s.callFn
}

func (s *fiber) runCall() {
	f := s.call
	s.call = nil
	suspend.Bind(nil, f)
}

// Panicked implements coro.Owner.
func (s *fiber) Panicked(value any, stack []byte) {
	onPanic := s.pool.opts.OnPanic
	if onPanic == nil {
		coro.Crash(value, stack)
	}
	onPanic(value, stack)
}

package workstealing

import (
	"github.com/braidgo/braid/adapters/internal/coro"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/labels"
	"github.com/braidgo/braid/suspend"
)

// A fiber is a coroutine of the pool, whatever runs on it: a task, a callback or a stolen fork. Any worker may resume it.
//
// Its state says what an Unpark has to do. -T> is the task, -W> the worker that runs it, -U> an Unpark.
//
//	active -W> parked   only after the switch back to the worker: from now on another may run it
//	parked -U> active   and the waker queues the fiber
//	active -U> woken    the permit
//	woken  -T> active   Park returns at once
//	woken  -W> active   instead of parked: the worker queues the fiber
//
// Invariant: only a task that is inside Park becomes parked. So an Unpark that comes late, to a task that is queued,
// runs or has ended, or to the next task of the same fiber, leaves the permit and touches nothing else.
type fiber struct {
	coro.Coroutine
	state   atomicx.Uint32
	counted bool // the fiber counts in live; written when it begins something
	pool    *Pool
	worker  *worker // runs it, or ran it last; the worker writes it before it resumes the fiber
	first   entry   // the fiber begins with it, if it is a task or a callback
	base    uint64  // the bottom of the worker's deque, when it resumed the fiber
	carried *fork   // off the deque while the fiber is runnable, the oldest first
	turns   uint    // turns since it gave way
	yields  uint    // yields while it had forks
	gave    bool    // it gives way
	joins   bool    // it waits for a fork, or is about to
	runFn   func()  // run, made once
}

const (
	active uint32 = iota
	parked
	woken
)

func newFiber(p *Pool) *fiber {
	s := &fiber{pool: p}
	s.runFn = s.run
	s.Init(s)
	return s
}

// commit parks a task that has switched in order to park; false says that it was woken before, and is runnable.
func (s *fiber) commit() bool {
	if s.state.CompareAndSwap(active, parked) {
		return true
	}
	s.state.Store(active) // an Unpark leaves a woken task alone
	return false
}

// Unpark implements suspend.Task.
func (s *fiber) Unpark() {
	for {
		switch s.state.Load() {
		case parked:
			if s.state.CompareAndSwap(parked, active) {
				s.pool.enqueue(&s.pool.injector, entry{fiber: s, woken: true})
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

// Leave implements suspend.Switcher.
func (s *fiber) Leave() (next coro.Next, yield coro.Yield) {
	yield = s.Coroutine.Leave(coro.Parked)
	if s.permitted() {
		return nil, nil
	}
	return nil, yield
}

// permitted takes the permit, if there is one.
func (s *fiber) permitted() bool {
	if s.state.Load() != woken {
		return false
	}
	s.state.Store(active)
	return true
}

// LeaveReady implements suspend.Switcher.
func (s *fiber) LeaveReady() (next coro.Next, yield coro.Yield) {
	return nil, s.Coroutine.Leave(coro.Yielded)
}

// Back implements suspend.Switcher. It is not called: Leave returns no next.
func (s *fiber) Back() (next coro.Next, yield coro.Yield) { return nil, nil }

// Spawner returns the pool.
func (s *fiber) Spawner() suspend.Spawner { return s.pool }

// Another implements coro.Owner: run itself begins the next functions.
func (s *fiber) Another() func() { return nil }

// Panicked implements coro.Owner.
func (s *fiber) Panicked(value any, stack []byte) {
	onPanic := s.pool.opts.OnPanic
	if onPanic == nil {
		coro.Crash(value, stack)
	}
	onPanic(value, stack)
}

// run runs a task or a callback, and then, as long as it is the turn of a new one, the next, without the two switches
// by way of the worker. The worker counts the last one.
func (s *fiber) run() {
	e := s.first
	s.first = entry{}
	for ok := true; ok; {
		if e.call {
			suspend.Bind(nil, e.f)
			labels.Clear()
		} else {
			e.f()
			s.TaskEnded()
		}
		w := s.worker
		if e, ok = w.pickNew(); ok {
			w.pool.ended()
			w.stalls.Begin()
		}
	}
}

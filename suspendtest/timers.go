package suspendtest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

// timerChecks test a scheduler's timers, clock and source of random numbers.
var timerChecks = []check{
	{"Timers/calls-once-and-not-early",
		"AfterFunc: f is called once, and not before d has passed on the scheduler's clock.", nil, timersCall},
	{"Timers/a-callback-must-not-suspend",
		"AfterFunc: f runs where suspending is forbidden, and may resume tasks, start them and set timers.", nil, timersForbid},
	{"Timers/stop-prevents-the-call-or-says-no",
		"AfterFunc: stop returns true once, and then f is never called, or false if f has been called or will be called.", nil, timersStop},
	{"Timers/under-locks",
		"AfterFunc and stop may be called under a lock that a callback waits for: they neither call nor wait for it.", nil, timersUnderLocks},
	{"Clock/does-not-go-back",
		"Now: the clock does not go back, and has advanced by d when a timer of d fires.", nil, clockRuns},
	{"Rand/differs-and-is-for-all",
		"Uint64: the numbers differ, and tasks may draw while others do.", nil, randDiffers},
}

// timers returns the scheduler's timers and clock. A check must set timers in a task.
func (e *env) timers() (t sched.Timers, now func() time.Time, ok bool) {
	t, ok = suspend.As[sched.Timers](e.spawner)
	now = time.Now
	if c, has := suspend.As[sched.Clock](e.spawner); has {
		now = c.Now
	}
	return t, now, ok
}

const aWhile = 2 * time.Millisecond

func timersCall(e *env) {
	t, now, ok := e.timers()
	if !ok {
		return
	}
	for _, d := range []time.Duration{-time.Second, 0, time.Nanosecond, 10 * aWhile} {
		var calls atomic.Int32
		var early atomic.Bool
		called := make(chan struct{}, 1)
		e.do("AfterFunc did not return", func() {
			begun := now()
			t.AfterFunc(d, func() {
				early.Store(now().Sub(begun) < d)
				if calls.Add(1) == 1 {
					called <- struct{}{}
				}
			})
		})
		recv(e, called, "a timer of "+d.String()+" did not fire")
		e.later(t)
		if n := calls.Load(); n != 1 {
			e.errorf("a timer of %v fired %d times", d, n)
		}
		if early.Load() {
			e.errorf("a timer of %v fired too early", d)
		}
	}
}

// later sets a timer and waits for its call. By then, an earlier timer that makes a wrong call has usually made it. A correct
// call may still come later, because timers may be late.
func (e *env) later(t sched.Timers) {
	called := make(chan struct{})
	e.do("AfterFunc did not return", func() { t.AfterFunc(2*aWhile, sync.OnceFunc(func() { close(called) })) })
	recv(e, called, "a timer did not fire")
	e.letPark()
}

func timersForbid(e *env) {
	t, _, ok := e.timers()
	if !ok {
		return
	}
	w := e.waiter(background)
	called := make(chan bool, 1)
	var began, again atomic.Bool
	e.do("AfterFunc did not return", func() {
		t.AfterFunc(0, func() {
			if !suspend.Forbidden() {
				e.errorf("suspending is allowed in a timer's callback, but the scheduler would not wait for it")
			}
			t.AfterFunc(0, func() { again.Store(true) })
			if err := e.spawner.Go(func() { began.Store(true) }); err != nil {
				e.errorf("Go in a callback of a timer: %v", err)
			}
			called <- w.resume(nil, nil)
		})
	})
	if !recv(e, called, "a timer did not fire") {
		e.errorf("the Resume of a waiting task returned false in a callback of a timer")
	}
	recv(e, w.ended, "a task that a timer has resumed did not continue")
	e.until(began.Load, "a task that a callback of a timer has started did not begin")
	e.until(again.Load, "a timer that was set in a timer's callback did not fire")
}

func timersStop(e *env) {
	t, _, ok := e.timers()
	if !ok {
		return
	}
	const n = 40
	var calls, stopped, twice atomic.Int32
	for i := range n {
		e.do("stop did not return", func() {
			d := time.Duration(i%4) * aWhile / 2
			stop := t.AfterFunc(d, func() { calls.Add(1) })
			for range i % 3 {
				suspend.Yield()
			}
			if stop() {
				stopped.Add(1)
			}
			if stop() {
				twice.Add(1)
			}
		})
	}
	e.until(func() bool { return calls.Load()+stopped.Load() >= n }, "a timer that was not stopped did not fire")
	e.later(t)
	if calls.Load()+stopped.Load() != n {
		e.errorf("of %d timers, %d were stopped and %d fired", n, stopped.Load(), calls.Load())
	}
	if twice.Load() > 0 {
		e.errorf("a timer was stopped twice")
	}
	var late func() bool
	called := make(chan struct{}, 1)
	e.do("AfterFunc did not return", func() { late = t.AfterFunc(0, func() { called <- struct{}{} }) })
	recv(e, called, "a timer did not fire")
	e.do("stop did not return", func() {
		if late() {
			e.errorf("stop returned true, but the timer has fired")
		}
	})
}

// timersUnderLocks runs callbacks that wait for a lock while tasks use timers under the same lock. A callback that resumes the
// waiters of a queue waits for such a lock, too. On a single-threaded scheduler, the callbacks wait for their turn.
func timersUnderLocks(e *env) {
	t, _, ok := e.timers()
	if !ok {
		return
	}
	var mu sync.Mutex
	var called atomic.Int32
	const n = 20
	var all []chan struct{}
	for range n {
		all = append(all, e.task(func() {
			mu.Lock()
			stop := t.AfterFunc(0, func() { mu.Lock(); called.Add(1); mu.Unlock() })
			t.AfterFunc(0, func() { mu.Lock(); called.Add(1); mu.Unlock() })
			time.Sleep(50 * time.Microsecond) // gives a callback on another thread time to wait for the lock
			if stop() {
				called.Add(1)
			}
			mu.Unlock()
		}))
	}
	for _, ended := range all {
		recv(e, ended, "AfterFunc, or stop, waits for a callback that waits for its caller's lock")
	}
	e.until(func() bool { return called.Load() >= 2*n }, "a timer that was not stopped did not fire")
	e.later(t)
	if got := called.Load(); got != 2*n {
		e.errorf("%d of %d timers fired or were stopped", got, 2*n)
	}
}

func clockRuns(e *env) {
	t, now, ok := e.timers()
	if _, has := suspend.As[sched.Clock](e.spawner); !ok || !has {
		return
	}
	last := make(chan time.Time, 1)
	var begun time.Time
	e.do("Now did not return", func() {
		begun = now()
		for prev, n := begun, 0; n < 1000; n++ {
			next := now()
			if next.Before(prev) {
				e.errorf("the clock went back from %v to %v", prev, next)
			}
			prev = next
		}
		t.AfterFunc(aWhile, func() { last <- now() })
	})
	if passed := recv(e, last, "a timer did not fire").Sub(begun); passed < aWhile {
		e.errorf("a timer of %v fired when the clock had advanced by %v", aWhile, passed)
	}
	e.do("Now did not return", func() {
		if here, there := suspend.Now(), now(); suspend.Current() != nil && there.Sub(here).Abs() > time.Minute {
			e.errorf("suspend.Now returns %v in a task, but the scheduler's clock %v", here, there)
		}
	})
}

func randDiffers(e *env) {
	r, ok := suspend.As[sched.Rand](e.spawner)
	if !ok {
		return
	}
	const tasks, draws = 4, 64
	var mu sync.Mutex
	seen := make(map[uint64]int)
	var all []chan struct{}
	for range tasks {
		all = append(all, e.task(func() {
			for range draws {
				x := r.Uint64()
				mu.Lock()
				seen[x]++
				mu.Unlock()
			}
		}))
	}
	for _, ended := range all {
		recv(e, ended, "Uint64 did not return")
	}
	if len(seen) < tasks*draws {
		e.errorf("of %d random numbers %d differ", tasks*draws, len(seen))
	}
}

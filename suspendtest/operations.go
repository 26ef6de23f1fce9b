package suspendtest

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

func bindNil(e *env) {
	e.do("a task that has used Bind(nil) did not end", func() {
		try := func() {
			e.panics("a Suspend under Bind(nil)", func() {
				e.pass(background)
			})
		}
		works := func() {
			v := new(box)
			got, err := e.suspend(background, func(r resume) (*box, bool) { go r(v, nil); return nil, false })
			if got != v || err != nil {
				e.errorf("after Bind(nil) Suspend returned %v, %v", got, err)
			}
		}
		suspend.Bind(nil, try)
		works()
		e.panics("Bind of a function that panics", func() { suspend.Bind(nil, func() { try(); panic(errTest) }) })
		works()
		suspend.Bind(nil, func() {
			suspend.Bind(sched.NewThread(), works)
			try()
		})
		works()
		done := make(chan struct{})
		suspend.Bind(nil, func() { go func() { defer close(done); works() }() })
		<-done
	})
}

func bindNests(e *env) {
	ok := func() {
		v := new(box)
		got, err := e.suspend(background, func(r resume) (*box, bool) { go r(v, nil); return nil, false })
		if got != v || err != nil {
			e.errorf("Suspend returned %v, %v", got, err)
		}
	}
	e.do("a task that nests Bind did not end", func() {
		outer := suspend.Self()
		bound := suspend.Here() != suspend.Goroutines || suspend.Self() == outer
		inner := sched.NewThread()
		for _, panics := range []bool{false, true} {
			func() {
				defer func() { _ = recover() }()
				suspend.Bind(inner, func() {
					if suspend.Self() != inner {
						e.errorf("under Bind(t), the current task is not t")
					}
					ok()
					suspend.Bind(inner, ok)
					if panics {
						panic(errTest)
					}
				})
			}()
			if bound && suspend.Self() != outer {
				e.errorf("Bind has not restored what was bound before")
			}
			ok()
		}
	})
	done := make(chan struct{})
	go func() { // a Goexit must unbind, too
		defer close(done)
		defer ok()
		suspend.Bind(sched.NewThread(), runtime.Goexit)
	}()
	recv(e, done, "after a Goexit under Bind Suspend does not work")
}

func plainGoroutine(e *env) {
	ctx, cancel := context.WithCancel(background)
	var first, second resume
	published, returned, cancelled := make(chan struct{}, 2), make(chan struct{}), make(chan struct{})
	w := e.waiter(background, func() {
		e.pass(ctx)
		go func() {
			defer close(returned)
			_, _ = e.suspend(ctx, func(r resume) (*box, bool) { first = r; published <- struct{}{}; return nil, false })
		}()
		go func() {
			defer close(cancelled)
			v, err := e.suspend(ctx, func(r resume) (*box, bool) { second = r; published <- struct{}{}; return nil, false })
			e.cancelled(ctx, v, err)
		}()
	})
	recv(e, published, "block did not run on a goroutine")
	recv(e, published, "block did not run on a goroutine")
	first(nil, nil)
	recv(e, returned, "a goroutine that was resumed did not continue")
	e.waits(w, "by the Resumer of a goroutine that it has started")
	cancel()
	recv(e, cancelled, "a suspended goroutine was not cancelled")
	if second(nil, nil) {
		e.errorf("Resume of a goroutine that was cancelled returned true")
	}
	e.finish(w)
}

func yieldLets(e *env) {
	if !hasYield(e) {
		return
	}
	var flag atomic.Bool
	waiting := make(chan struct{})
	spinner := e.task(func() {
		close(waiting)
		for !flag.Load() && !e.over.Load() {
			suspend.Yield()
		}
	})
	recv(e, waiting, "a task did not run")
	recv(e, e.task(func() { flag.Store(true) }), "a task did not run while another yielded again and again")
	recv(e, spinner, "a task that yielded did not continue")

	// Tasks that yield must not keep another task from being woken.
	w := e.waiter(background)
	var turns atomic.Int32
	var ended []chan struct{}
	for range 2 {
		ended = append(ended, e.task(func() {
			for turns.Add(1) < 1000 && !e.over.Load() {
				e.progress()
				suspend.Yield()
			}
		}))
	}
	e.finish(w)
	for _, ended := range ended {
		recv(e, ended, "a task that yielded did not continue")
	}
}

// yieldGivesWay starts tasks one after another and counts the calls of Yield until each task has run. If Yield gives way, one
// or two calls are enough. Otherwise the caller yields thousands of times, until the runtime preempts the caller.
//
// An idle processor would run the task, so other goroutines keep all other processors busy. A task may be given to another
// thread, which then waits for a processor. Therefore the check passes if a quarter of the tasks run soon.
func yieldGivesWay(e *env) {
	if !hasYield(e) {
		return
	}
	var over atomic.Bool
	defer over.Store(true)
	for range runtime.GOMAXPROCS(0) - 1 {
		go func() {
			for !over.Load() && !e.over.Load() {
			}
		}()
	}
	const tasks, many = 40, 100
	e.do("a task did not run while another yielded", func() {
		soon := 0
		for range tasks {
			var ran atomic.Bool
			if err := suspend.Here().Go(func() { ran.Store(true) }); err != nil {
				e.fatalf("Here().Go: %v", err)
			}
			yields := 0
			for ; !ran.Load() && !e.over.Load(); yields++ {
				suspend.Yield()
			}
			if yields <= many {
				soon++
			}
			e.progress()
		}
		if soon < tasks/4 {
			e.errorf("a task that waits for another to run called Yield more than %d times, for %d of %d", many, tasks-soon, tasks)
		}
	})
}

// hasYield reports whether the tasks have a Yield method, or are goroutines.
func hasYield(e *env) (has bool) {
	e.do("a task did not run", func() {
		_, own := suspend.Self().(interface{ Yield() })
		has = own || suspend.Here() == suspend.Goroutines
	})
	return has
}

func here(e *env) {
	e.do("a task that was started through Here did not run", func() {
		h := suspend.Here()
		if h != suspend.Goroutines && h != e.spawner {
			e.errorf("Here() is %T %p, and the scheduler that the task was started on %T %p", h, h, e.spawner, e.spawner)
		}
	})
	inner := make(chan chan struct{}, 1)
	e.do("a task did not run", func() {
		ended := make(chan struct{})
		if err := suspend.Here().Go(func() {
			defer close(ended)
			e.pass(background)
		}); err != nil {
			e.errorf("Here().Go: %v", err)
		}
		inner <- ended
	})
	recv(e, <-inner, "a task that was started through Here did not run")
}

func sleeps(e *env) {
	const d = 20 * time.Millisecond
	ctx, cancel := context.WithCancelCause(background)
	for _, short := range []time.Duration{-1, 0, time.Nanosecond, d} {
		e.do("Sleep did not return", func() {
			begin := suspend.Now() // reads the same clock as the timers
			err := suspend.Sleep(ctx, short)
			if slept := suspend.Now().Sub(begin); err != nil || slept < short {
				e.errorf("Sleep(%v) returned %v after %v", short, err, slept)
			}
		})
	}
	asleep := make(chan struct{})
	long := e.task(func() {
		close(asleep)
		e.isCancellation(ctx, suspend.Sleep(ctx, time.Hour))
		for _, d := range []time.Duration{0, time.Hour} {
			e.isCancellation(ctx, suspend.Sleep(ctx, d))
		}
	})
	recv(e, asleep, "a task did not run")
	e.letPark()
	cancel(errTest)
	recv(e, long, "a Sleep was not cancelled")
}

func blockingHolds(e *env) {
	release := make(chan struct{})
	done, cancel := context.WithCancel(background)
	cancel()
	blocked := e.task(func() {
		ran := false
		if err := suspend.Blocking(background, func() { <-release; ran = true }); err != nil || !ran {
			e.errorf("Blocking returned %v, and f has run: %v", err, ran)
		}
		if err := suspend.Blocking(done, func() { e.errorf("Blocking ran f although ctx had ended before") }); !errors.Is(err, context.Canceled) {
			e.errorf("Blocking with a cancelled context returned %v", err)
		}
	})
	e.do("a task did not run while another was in Blocking", func() {})
	e.letPark()
	close(release)
	recv(e, blocked, "Blocking did not return")
	ctx, cancel := context.WithCancel(background)
	started := e.task(func() { // once f has started, Blocking waits for f
		ran := false
		err := suspend.Blocking(ctx, func() { cancel(); ran = true })
		if err != nil || !ran {
			e.errorf("Blocking was cancelled while f ran, and returned %v; f has run: %v", err, ran)
		}
	})
	recv(e, started, "Blocking did not return")
}

func blockingAfterClose(e *env) {
	goOn := make(chan struct{})
	ended := e.task(func() {
		_, _ = e.suspend(background, func(r resume) (*box, bool) {
			go func() { <-goOn; r(nil, nil) }()
			return nil, false
		})
		ran := false
		if err := suspend.Blocking(background, func() { ran = true }); err != nil || !ran {
			e.errorf("Blocking after Close returned %v; f has run: %v", err, ran)
		}
	})
	e.letPark()
	closed := e.closing(func() bool { return true })
	for range 100 { // a refusal shows that close has begun
		if e.submit(func() {}) != nil {
			break
		}
		runtime.Gosched()
	}
	close(goOn)
	recv(e, ended, "a task did not end after Close")
	recv(e, closed, "close did not return")
}

func blockingFails(e *env) {
	e.do("Blocking did not return", func() {
		func() {
			defer func() {
				if v := recover(); v != errTest {
					e.errorf("f panicked with %v, and Blocking with %v", errTest, v)
				}
			}()
			_ = suspend.Blocking(background, func() { panic(errTest) })
		}()
	})
	var after atomic.Bool
	e.do("Blocking did not return", func() {
		_ = suspend.Blocking(background, runtime.Goexit)
		after.Store(true)
	})
	if after.Load() {
		e.errorf("f called runtime.Goexit, but the task continued")
	}
	e.letPark()
}

func pullSuspends(e *env) {
	const tasks, values = 4, 5
	resumes := make(chan resume, tasks)
	seq := func(yield func(int) bool) {
		for i := range values {
			_, _ = e.suspend(background, func(r resume) (*box, bool) { resumes <- r; return nil, false })
			if !yield(i) {
				return
			}
		}
	}
	var ended []chan struct{}
	for range tasks {
		ended = append(ended, e.task(func() {
			next, stop := suspend.Pull(seq)
			defer stop()
			for want := range values {
				if i, ok := next(); i != want || !ok {
					e.errorf("next returned %d, %v", i, ok)
				}
			}
			if _, ok := next(); ok {
				e.errorf("next returned a value after the last")
			}
		}))
	}
	for range values {
		var round []resume
		for range tasks { // all tasks are suspended at the same time
			round = append(round, recv(e, resumes, "a Suspend in the body of Pull blocks other tasks"))
		}
		e.letPark()
		for _, r := range round {
			r(nil, nil)
		}
	}
	for _, ended := range ended {
		recv(e, ended, "a task that was resumed in the body of Pull did not continue")
	}
}

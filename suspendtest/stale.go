package suspendtest

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// staleResumers makes a task suspend many times, in three ways, and calls all old Resumers in between.
func staleResumers(e *env) {
	const rounds = 40
	published := make(chan resume, 1)
	results := make(chan *box, 1)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended := e.task(func() {
		for i := range rounds {
			c := ctx
			if i%2 == 0 {
				c = background
			}
			v, err := e.suspend(c, func(r resume) (*box, bool) {
				published <- r
				if i%5 == 4 {
					return &box{n: i}, true
				}
				return nil, false
			})
			if err != nil {
				e.errorf("Suspend returned %v", err)
			}
			results <- v
		}
	})
	var stale []resume
	for i := range rounds {
		r := recv(e, published, "block did not run")
		for _, old := range stale {
			if old(new(box), nil) {
				e.fatalf("the Resumer of an earlier suspension returned true")
			}
		}
		e.letPark()
		if i%5 != 4 {
			v := &box{n: i}
			if !r(v, nil) {
				e.fatalf("the Resume of a waiting task returned false")
			}
		}
		if v := recv(e, results, "a task that was resumed did not continue"); v == nil || v.n != i {
			e.fatalf("Suspend %d returned %v", i, v)
		}
		stale = append(stale, r)
	}
	recv(e, ended, "the task did not end")
	w := e.waiter(background) // the new task may reuse the coroutine of the first task
	for _, old := range stale {
		if old(new(box), nil) {
			e.fatalf("the Resumer of a task that has ended returned true")
		}
	}
	e.waits(w, "by the Resumer of a task that has ended")
	e.finish(w)
}

func unparkOnly(e *env) {
	var self suspend.Task
	w := e.waiter(background, func() {
		self = suspend.Self()
	})
	e.letPark()
	e.expect("Unpark blocks")
	for range 10 {
		self.Unpark()
		self.Unpark()
		e.waits(w, "by an Unpark without a Resume")
	}
	e.finish(w)
}

// lateUnparks starts tasks one after another, while a goroutine keeps unparking the running tasks and the tasks that have ended.
func lateUnparks(e *env) {
	var mu sync.Mutex
	var known []suspend.Task
	var stop atomic.Bool
	hammer := make(chan struct{})
	go func() {
		defer close(hammer)
		for !stop.Load() && !e.over.Load() {
			mu.Lock()
			ts := slices.Clone(known)
			mu.Unlock()
			for _, t := range ts {
				t.Unpark()
			}
			runtime.Gosched()
		}
	}()
	for i := range 150 {
		want := &box{n: i}
		published := make(chan resume, 2)
		ended := e.task(func() {
			t := suspend.Self()
			mu.Lock()
			if len(known) > 8 {
				known = known[1:]
			}
			known = append(known, t)
			mu.Unlock()
			t.Unpark() // leaves a permit that no Park has consumed
			for range 2 {
				v, err := e.suspend(background, func(r resume) (*box, bool) { published <- r; return nil, false })
				if v != want || err != nil {
					e.errorf("under late Unparks Suspend returned %v, %v", v, err)
				}
			}
		})
		for range 2 {
			if r := recv(e, published, "a task did not suspend under late Unparks"); !r(want, nil) {
				e.fatalf("the Resume of a waiting task returned false under late Unparks")
			}
		}
		recv(e, ended, "a task that was resumed did not continue under late Unparks")
		runtime.Gosched() // lets the goroutine above unpark the ended task, even on one thread
	}
	stop.Store(true)
	recv(e, hammer, "Unpark blocks")
	e.letPark()
}

func lateCancellation(e *env) {
	other, cancelOther := context.WithCancel(background)
	defer cancelOther()
	for _, kind := range contextKinds {
		for _, second := range []context.Context{background, other} {
			first, cancel := kind.make()
			w := e.waiter(second, func() {
				e.pass(first)
			})
			cancel()
			e.waits(w, "by the end of a context with which the task had waited before")
			e.finish(w)
		}
	}
}

package suspendtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/braidgo/braid/suspend"
)

// oneWinner lets two Resumes and a cancellation compete, in many rounds on one task.
func oneWinner(e *env) {
	const rounds = 300
	type wait struct {
		r      resume
		ctx    context.Context
		cancel func()
	}
	type result struct {
		v   *box
		err error
	}
	waits, results := make(chan wait, 1), make(chan result, 1)
	ended := e.task(func() {
		for i := range rounds {
			ctx, cancel := contextKinds[i%len(contextKinds)].make()
			v, err := e.suspend(ctx, func(r resume) (*box, bool) {
				waits <- wait{r, ctx, cancel}
				return nil, false
			})
			results <- result{v, err}
		}
	})
	resumed, cancelled := 0, 0
	for i := range rounds {
		w := recv(e, waits, "a Suspend in the storm did not run its block")
		var wg sync.WaitGroup
		var wins atomic.Int32
		var winner atomic.Pointer[box]
		for range 2 {
			contend := func() {
				if v := new(box); w.r(v, nil) {
					wins.Add(1)
					winner.Store(v)
				}
			}
			if i%3 == 0 {
				contend()
			} else {
				wg.Go(contend)
			}
		}
		if i%3 == 1 {
			w.cancel()
		} else {
			wg.Go(w.cancel)
		}
		e.expect("Resume or a cancellation does not return")
		wg.Wait()
		r := recv(e, results, "a Suspend did not return although it was resumed or cancelled")
		switch {
		case r.err == nil && wins.Load() == 1 && r.v == winner.Load():
			resumed++
		case r.err != nil && wins.Load() == 0 && r.v == nil:
			e.isCancellation(w.ctx, r.err)
			cancelled++
		default:
			e.fatalf("round %d: %d Resumes returned true, and Suspend returned %v, %v", i, wins.Load(), r.v, r.err)
		}
	}
	recv(e, ended, "the task did not end")
	if resumed == 0 || cancelled == 0 {
		e.errorf("uncovered: %d resumed, %d cancelled", resumed, cancelled)
	}
}

func secondResume(e *env) {
	w := e.waiter(background)
	first, second := w.resume(&box{n: 1}, nil), w.resume(&box{n: 2}, nil)
	recv(e, w.ended, "a task that was resumed did not continue")
	if !first || second || w.v == nil || w.v.n != 1 {
		e.errorf("two Resumes returned %v and %v, and Suspend %v", first, second, w.v)
	}
	if w.resume(&box{n: 3}, nil) {
		e.errorf("a third Resume returned true")
	}
}

func resumeCancelled(e *env) {
	ctx, cancel := context.WithCancel(background)
	var dead resume
	w := e.waiter(background, func() {
		v, err := e.suspend(ctx, func(r resume) (*box, bool) {
			dead = r
			go cancel()
			return nil, false
		})
		e.cancelled(ctx, v, err)
	})
	if dead(new(box), nil) {
		e.fatalf("Resume returned true after Suspend had returned its cancellation")
	}
	e.waits(w, "by a Resume of the cancelled suspension before it")
	e.finish(w)
}

func resumeAfterCancel(e *env) {
	for _, kind := range contextKinds {
		for range 20 {
			ctx, cancel := kind.make()
			w := e.waiter(ctx)
			cancel()
			if w.resume(new(box), nil) {
				e.fatalf("Resume returned true after the cancellation: %s", kind.name)
			}
			recv(e, w.ended, "a parked task was not cancelled by "+kind.name)
			e.cancelled(ctx, w.v, w.err)
		}
	}
}

func deliveryPromise(e *env) {
	for _, kind := range contextKinds {
		for _, inBlock := range []bool{true, false} {
			ctx, cancel := kind.make()
			v := new(box)
			e.do("a Suspend that was resumed did not return", func() {
				got, err := e.suspend(ctx, func(r resume) (*box, bool) {
					resume := func() {
						if r(v, nil) {
							cancel()
						} else {
							e.errorf("Resume of a waiting task returned false")
						}
					}
					if inBlock {
						resume()
					} else {
						go resume()
					}
					return nil, false
				})
				if got != v || err != nil {
					e.errorf("Resume returned true, then ctx was cancelled (%s), and Suspend returned %v, %v", kind.name, got, err)
				}
			})
		}
		ctx, cancel := kind.make()
		w := e.waiter(ctx)
		v := new(box)
		if !w.resume(v, nil) {
			e.errorf("Resume of a parked task returned false")
		}
		cancel()
		recv(e, w.ended, "a task that was resumed and then cancelled did not continue")
		if w.v != v || w.err != nil {
			e.errorf("Resume returned true, then ctx was cancelled (%s), and Suspend returned %v, %v", kind.name, w.v, w.err)
		}
	}
}

func deliverBoth(e *env) {
	w := e.waiter(background)
	v := new(box)
	w.resume(v, errTest)
	recv(e, w.ended, "a task that was resumed did not continue")
	if w.v != v || w.err != errTest {
		e.errorf("Suspend returned %v, %v", w.v, w.err)
	}
}

func resumeInBlock(e *env) {
	for _, elsewhere := range []bool{false, true} {
		v := new(box)
		e.do("a Suspend that was resumed inside block did not return", func() {
			got, err := e.suspend(background, func(r resume) (*box, bool) {
				resumed := make(chan bool, 1)
				if elsewhere {
					go func() { resumed <- r(v, nil) }()
				} else {
					resumed <- r(v, nil)
				}
				if !<-resumed {
					e.errorf("Resume returned false while block was still running")
				}
				return nil, false
			})
			if got != v || err != nil {
				e.errorf("Suspend returned %v, %v", got, err)
			}
		})
	}
}

func resumeAfter(e *env) {
	w := e.waiter(background)
	e.finish(w)
	for range 100 {
		if w.resume(new(box), nil) {
			e.fatalf("Resume after the task has ended returned true")
		}
	}
	e.letPark()
}

func resumeAfterClose(e *env) {
	ctx, cancel := context.WithCancel(background)
	waiters := []*waiter{e.waiter(background), e.waiter(ctx)}
	var tasks []suspend.Task
	e.do("a task did not run", func() { tasks = append(tasks, suspend.Self()) })
	e.finish(waiters[0])
	cancel()
	recv(e, waiters[1].ended, "a parked task was not cancelled")
	e.close()
	e.expect("Resume or Unpark does not return after close")
	for _, w := range waiters {
		if w.resume(new(box), nil) {
			e.errorf("Resume after close returned true")
		}
	}
	for _, t := range tasks {
		t.Unpark()
	}
}

// resumeUnderLock makes waiters lock a sync.Mutex that is held while Resume is called.
func resumeUnderLock(e *env) { underLock(e, func(f func()) { f() }) }

func resumeUnderLockInTask(e *env) {
	underLock(e, func(f func()) { e.do("Resume in a task did not return before the waiter had run", f) })
}

func underLock(e *env, from func(func())) {
	var mu sync.Mutex
	var resumes []resume
	var ended []chan struct{}
	for range 3 {
		published := make(chan struct{})
		ended = append(ended, e.task(func() {
			_, _ = e.suspend(background, func(r resume) (*box, bool) {
				resumes = append(resumes, r)
				close(published)
				return nil, false
			})
			mu.Lock() // a Resume that ran the waiter would deadlock here
			defer mu.Unlock()
		}))
		recv(e, published, "block did not run")
	}
	e.letPark()
	e.expect("Resume did not return before the waiter had run")
	from(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range resumes {
			r(nil, nil)
		}
	})
	for _, ended := range ended {
		recv(e, ended, "a task that was resumed under a lock did not continue")
	}
}

func resumeBusy(e *env) {
	w := e.waiter(background)
	started, release := make(chan struct{}), make(chan struct{})
	busy := e.task(func() {
		close(started)
		<-release // waits natively and so keeps the worker busy
	})
	recv(e, started, "a task did not run while another was suspended")
	e.expect("Resume did not return while a task held the scheduler")
	w.resume(nil, nil)
	e.expect("Go did not return while a task held the scheduler")
	late := e.task(func() {})
	close(release)
	recv(e, busy, "a task that held the scheduler did not end")
	recv(e, w.ended, "a task that was resumed while another held the scheduler did not continue")
	recv(e, late, "a task that was started while another held the scheduler did not run")
}

func resumeOrder(e *env) {
	const n = 50
	var waiters []*waiter
	var mu sync.Mutex
	var order []int
	for i := range n {
		w := &waiter{published: make(chan struct{})}
		w.ended = e.task(func() {
			_, _ = e.suspend(background, func(r resume) (*box, bool) {
				w.resume = r
				close(w.published)
				return nil, false
			})
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		})
		waiters = append(waiters, w)
		recv(e, w.published, "block did not run")
	}
	e.letPark()
	var want []int
	for i := range n {
		k := i * 7 % n
		want = append(want, k)
		waiters[k].resume(nil, nil)
	}
	for _, w := range waiters {
		recv(e, w.ended, "a task that was resumed did not continue")
	}
	if !slices.Equal(order, want) {
		e.errorf("resumed in the order %v, the tasks ran in the order %v", want, order)
	}
}

// happensBefore synchronizes the accesses to a plain variable only through Resume, so that the race detector reports a missing
// happens-before edge.
func happensBefore(e *env) {
	const rounds = 200
	var plain int
	resumes := make(chan resume, 1)
	ended := e.task(func() {
		for i := range rounds {
			v, _ := e.suspend(background, func(r resume) (*box, bool) { resumes <- r; return nil, false })
			if v == nil || v.n != i || plain != i+1 {
				e.fatalf("in round %d: %v, and the variable is %d", i, v, plain)
			}
		}
	})
	for i := range rounds {
		r := recv(e, resumes, "block did not run")
		plain = i + 1
		r(&box{n: i}, nil)
	}
	recv(e, ended, "a task that was resumed did not continue")

	// Next, a ring of tasks passes the variable from task to task.
	const n = 10
	ring := make(chan resume, n)
	var next []resume
	var done []chan struct{}
	for range n {
		done = append(done, e.task(func() {
			_, _ = e.suspend(background, func(r resume) (*box, bool) { ring <- r; return nil, false })
			plain++
			if i := plain - rounds; i < n {
				next[i](nil, nil)
			}
		}))
		next = append(next, recv(e, ring, "block did not run"))
	}
	next[0](nil, nil)
	for _, done := range done {
		recv(e, done, "a task in a ring did not run")
	}
	if plain != rounds+n {
		e.errorf("the variable is %d", plain)
	}
}

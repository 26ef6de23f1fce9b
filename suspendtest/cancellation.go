package suspendtest

import (
	"context"
	"errors"
)

func cancelError(e *env) {
	for _, kind := range allKinds {
		ctx, cancel := kind.make()
		w := e.waiter(ctx)
		cancel()
		recv(e, w.ended, "a parked task was not cancelled by "+kind.name)
		e.cancelled(ctx, w.v, w.err)
		e.do("Suspend did not return although ctx has ended", func() {
			v, err := e.suspend(ctx, func(resume) (*box, bool) { return nil, false })
			e.cancelled(ctx, v, err)
		})
	}
}

func anyContext(e *env) {
	for _, kind := range allKinds {
		for range 3 {
			ctx, cancel := kind.make()
			published := make(chan struct{}, 1)
			ended := e.task(func() {
				for range 3 { // these waits end by a Resume, and the wait below by a cancellation
					e.pass(ctx)
				}
				v, err := e.suspend(ctx, func(r resume) (*box, bool) { published <- struct{}{}; return nil, false })
				e.cancelled(ctx, v, err)
				published <- struct{}{}
			})
			recv(e, published, "block did not run")
			cancel()
			recv(e, ended, "a parked task was not cancelled by "+kind.name)
		}
	}
}

func alternatingContexts(e *env) {
	for _, a := range contextKinds {
		for _, b := range contextKinds {
			ctxA, cancelA := a.make()
			ctxB, cancelB := b.make()
			published := make(chan struct{}, 1)
			ended := e.task(func() {
				for _, ctx := range []context.Context{ctxA, ctxB, background, context.WithValue(ctxA, key{}, 1), ctxB, ctxA} {
					_, err := e.suspend(ctx, func(r resume) (*box, bool) { go r(nil, nil); return nil, false })
					if err != nil {
						e.errorf("Suspend returned %v", err)
					}
				}
				for _, ctx := range []context.Context{ctxB, ctxA} {
					v, err := e.suspend(ctx, func(resume) (*box, bool) { published <- struct{}{}; return nil, false })
					e.cancelled(ctx, v, err)
				}
			})
			recv(e, published, "block did not run")
			cancelB()
			recv(e, published, "a parked task was not cancelled by "+b.name)
			cancelA()
			recv(e, ended, "a parked task was not cancelled by "+a.name)
		}
	}
}

// cancelAnywhere cancels a context during each call that Suspend makes to the context's methods, in the first wait with the
// context and in the second.
func cancelAnywhere(e *env) {
	reached := 0
	for _, again := range []bool{false, true} {
		for n := 1; n <= 10; n++ {
			own := newOwnContext()
			published, ended := make(chan struct{}, 1), make(chan struct{})
			task := e.task(func() {
				defer close(ended)
				if again {
					e.pass(own)
				}
				blocks := 0
				own.arm(n)
				v, err := e.suspend(own, func(resume) (*box, bool) {
					blocks++
					published <- struct{}{}
					return nil, false
				})
				own.arm(0)
				if v != nil || !errors.Is(err, context.Canceled) {
					e.errorf("Suspend returned %v, %v", v, err)
				}
				if blocks > 1 {
					e.errorf("block ran %d times", blocks)
				}
			})
			e.expect("a context that ended during Suspend did not cancel it")
			select {
			case <-published:
				e.letPark()
				if own.isDone() {
					reached++
				}
				own.cancel()
			case <-ended:
				reached++
			}
			recv(e, task, "a context that ended during Suspend did not cancel it")
		}
	}
	if reached == 0 {
		e.errorf("uncovered: no context was cancelled during Suspend")
	}
}

func cancelBetween(e *env) {
	for _, kind := range allKinds {
		ctx, cancel := kind.make()
		e.do("a context that ended between two waits did not cancel the second wait", func() {
			e.pass(ctx)
			e.pass(background)
			cancel()
			for range 2 {
				v, err := e.suspend(ctx, func(resume) (*box, bool) { return nil, false })
				e.cancelled(ctx, v, err)
			}
		})
	}
}

func neverDone(e *env) {
	parent, cancel := context.WithCancel(background)
	defer cancel()
	for _, ctx := range []context.Context{background, context.WithValue(background, key{}, 1), context.WithoutCancel(parent)} {
		w := e.waiter(ctx, func() {
			e.pass(parent)
		})
		cancel()
		e.waits(w, "by a context that never ends")
		e.finish(w)
	}
}

func registrations(e *env) {
	const n = 20
	var contexts []*ownContext
	most := 0
	w := e.waiter(background, func() {
		for range n {
			own := newOwnContext()
			contexts = append(contexts, own)
			for range 3 {
				e.pass(own)
			}
			live := 0
			for _, c := range contexts {
				live += c.registered()
			}
			most = max(most, live)
		}
	})
	e.finish(w)
	e.letPark()
	e.close()
	asked := 0
	for _, c := range contexts {
		asked += c.asked
		if c.registered() != 0 {
			e.errorf("a registration is left in a context after the end of the task")
		}
	}
	if most > 1 {
		e.errorf("a task had %d registrations at the same time", most)
	}
	if asked > n {
		e.errorf("%d contexts, three waits with each, and %d registrations", n, asked)
	}
}

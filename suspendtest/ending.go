package suspendtest

import (
	"context"
	"testing"

	"github.com/braidgo/braid/suspend"
)

// Ending checks a scheduler whose executor may end before its tasks. The tasks must still run to their end, and close must
// return. open is called for each subtest. The function end stops the executor for good while tasks are still alive; close is
// the same as in Open.
func Ending(t *testing.T, open func(t testing.TB) (s suspend.Spawner, end, close func())) {
	runChecks(t, endingChecks, Options{}.complete(), openEnding(open))
}

var endingChecks = []check{
	{"Ending/a-task-that-is-cancelled-ends",
		"a task that is suspended when the executor ends, and is then cancelled, runs to its end; close waits for it.", nil, endingCancelled},
	{"Ending/a-task-that-is-resumed-ends",
		"a resumed task runs to its end, even through further waits, although the executor has ended.", nil, endingResumed},
	{"Ending/refused-or-run",
		"Go: nil means that f will run, even if the executor has ended.", nil, endingSubmit},
}

func endingCancelled(e *env) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var all []*waiter
	cleaned := make(chan struct{}, 3)
	for range cap(cleaned) {
		w := &waiter{published: make(chan struct{})}
		w.ended = e.task(func() {
			_, w.err = e.suspend(ctx, func(resume) (*box, bool) { close(w.published); return nil, false })
			e.pass(background) // a cleanup may suspend, too
			cleaned <- struct{}{}
		})
		recv(e, w.published, "a task did not suspend")
		all = append(all, w)
	}
	e.end()
	cancel()
	for _, w := range all {
		recv(e, w.ended, "a task that was cancelled after the end of its executor did not end")
		e.cancelled(ctx, nil, w.err)
	}
	e.close()
	if len(cleaned) != cap(cleaned) {
		e.errorf("%d of %d tasks have cleaned up", len(cleaned), cap(cleaned))
	}
}

func endingResumed(e *env) {
	w := &waiter{published: make(chan struct{})}
	w.ended = e.task(func() {
		w.v, w.err = e.suspend(background, func(r resume) (*box, bool) {
			w.resume = r
			close(w.published)
			return nil, false
		})
		for range 10 {
			e.pass(background)
			suspend.Yield()
		}
	})
	recv(e, w.published, "a task did not suspend")
	e.end()
	e.finish(w)
}

func endingSubmit(e *env) {
	accepted, ran := 0, make(chan struct{}, 10)
	e.end()
	for range cap(ran) {
		if e.spawner.Go(func() { ran <- struct{}{} }) == nil {
			accepted++
		}
	}
	e.close()
	if len(ran) != accepted {
		e.errorf("%d of %d tasks that were accepted have run", len(ran), accepted)
	}
}

package suspendtest

import (
	"context"
	"runtime"
	"sync/atomic"
)

// marks counts the marked objects, and how many of them have not been collected yet.
type marks struct{ made, alive atomic.Int32 }

func (m *marks) new() *box {
	b := new(box)
	m.made.Add(1)
	m.alive.Add(1)
	runtime.AddCleanup(b, func(m *marks) { m.alive.Add(-1) }, m)
	return b
}

// collected waits until the number of marked objects that are alive is at most limit.
func (m *marks) collected(e *env, what string, limit int32) {
	e.expect(what + " is still retained")
	for n := 0; m.alive.Load() > limit && !e.over.Load(); n++ {
		if n < 10 { // a collection may take long; ten should be enough
			e.progress()
		}
		runtime.GC()
		runtime.Gosched()
	}
	if m.made.Load() == 0 {
		e.errorf("uncovered: %s", what)
	}
}

// leaveNothing waits twenty times, and must leave nothing behind. Each wait gets a value, or is cancelled and then refuses a
// value. leaveNothing returns the resume functions of the waits.
func (e *env) leaveNothing(values, blocks, contexts *marks) (resumes []resume) {
	for i := range 20 {
		ctx, cancel := context.WithCancel(context.WithValue(background, key{}, contexts.new()))
		defer cancel()
		captured := blocks.new()
		_, err := e.suspend(ctx, func(r resume) (*box, bool) {
			captured.n++
			resumes = append(resumes, r)
			if i%4 == 0 {
				r(values.new(), nil)
			} else {
				go cancel()
			}
			return nil, false
		})
		if err != nil && resumes[len(resumes)-1](values.new(), nil) {
			e.errorf("Resume returned true after the cancellation")
		}
	}
	return resumes
}

func retention(e *env) {
	var values, blocks, contexts marks
	var resumes []resume // a kept resumer must retain nothing
	w := e.waiter(background, func() { resumes = e.leaveNothing(&values, &blocks, &contexts) })
	values.collected(e, "a value of an earlier wait", 0)
	blocks.collected(e, "the block of an earlier wait", 0)
	contexts.collected(e, "more than one context of an earlier wait", 1)
	runtime.KeepAlive(resumes)
	e.finish(w)
}

func retentionEnded(e *env) {
	var values, blocks, contexts marks
	e.do("a task did not end", func() { _ = e.leaveNothing(&values, &blocks, &contexts) })
	e.letPark()
	values.collected(e, "a value of a task that has ended", 0)
	blocks.collected(e, "a block of a task that has ended", 0)
	contexts.collected(e, "a context of a task that has ended", 0)
}

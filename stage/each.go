package stage

import (
	"context"
	"fmt"
	"iter"

	"github.com/braidgo/braid/internal/producer"
	"github.com/braidgo/braid/suspend"
)

// EachOptions configures Each. The zero value keeps the order.
type EachOptions struct {
	Window    int  // the maximum number of tasks in flight; zero means 64
	Unordered bool // yield answers in the order in which tasks end
}

// Each feeds the values of the sequence in through f, and yields the answers in the order of these values, unless o.Unordered is set.
// Each answer is yielded as soon as its turn has come, even while in has no further value yet. At most o.Window tasks are in flight.
// The goroutine or task that ranges over the result feeds f. If a stage is full, Each waits for room, even with
// Options.Reject, and yields no answer meanwhile. If a task fails, Each yields its error and a zero answer, and goes on. A scope.Stream
// over an Each stops at the first failed task. For a sequence that cannot fail, see scope.Lift.
//
// After a break, Each stops feeding, cancels the tasks in flight, and waits until they are done. After an error of in, Each stops
// feeding, yields the answers of the tasks in flight, and yields last an error that wraps ErrInput and the error of in. The value that
// comes with the error is dropped. When ctx is done, Each stops feeding, yields the tasks in flight with their errors, and yields the
// cancellation error last, unless in has failed.
//
// The sequence runs in a task of its own, on the scheduler of the caller. It advances while the caller waits, and is at most one value
// ahead of the tasks. If an answer exists before the next value does, in runs in parallel with the loop body. When the iteration ends,
// in ends as in scope.Stream; until then, an in that has failed waits in its yield. As in scope.Stream, in must not wait for anything
// that only the caller can give it, such as a slot of the stage whose handler ranges over the result. A panic or runtime.Goexit of in
// continues in the caller.
func Each[In, Out any](ctx context.Context, f Flow[In, Out], in iter.Seq2[In, error], o EachOptions) iter.Seq2[Out, error] {
	if o.Window <= 0 {
		o.Window = 64
	}
	return func(yield func(Out, error) bool) {
		inner, stop := context.WithCancel(ctx)
		e := &feed[Out]{unordered: o.Unordered, from: taskOf(ctx).here()}
		defer func() { // the deferred functions run even if the sequence or yield panics
			for e.flying > 0 {
				e.collect()
			}
		}()
		values := producer.Start(in)
		defer values.Stop()
		defer stop()
		port, next := f.front(), suspend.CaseOf(values.NextOp())
		var v In
		var failed error // the error of in
		held := false    // v is the next value, and the window is full
		for more := true; more || e.pending() > 0; {
			switch {
			case len(e.ready) > 0:
				if c := e.nextAnswer(); !yield(c.out, c.err) {
					return
				}
			case !more || held:
				e.collect()
			default:
				values.Request()
				if came, err := e.collectOr(ctx, next); came {
					n := next.Value()
					v, failed, more = n.Value, n.Err, n.OK && n.Err == nil
					held = more
				} else if err != nil {
					more = false // ctx has ended
				}
			}
			if !held || e.pending() >= o.Window {
				continue
			}
			held = false
			c := &fed[Out]{f: e}
			c.values, c.answer, c.until = inner, c, likeCtx
			err := suspend.Err(inner)
			if err == nil {
				var from *core
				if c.parent, from, err = adopted(inner); err == nil {
					err = handIn(inner, &c.task, port, v, always, from)
				}
			}
			if suspend.Err(ctx) != nil && err != nil {
				more = false // the error of ctx is yielded at the end
				continue
			}
			e.add(c, err)
		}
		if failed == nil {
			failed = suspend.Err(ctx)
		} else {
			failed = fmt.Errorf("%w: %w", ErrInput, failed)
		}
		if failed != nil {
			var zero Out
			yield(zero, failed)
		}
	}
}

// A feed is the state of one Each. Only the caller of Each uses the fields that precede the guard.
type feed[Out any] struct {
	unordered bool
	from      *core           // the stage whose handler is the caller, or nil
	flying    int             // tasks that were fed and have not been collected
	ready     []*fed[Out]     // tasks to be yielded next
	order     ring[*fed[Out]] // tasks that are not ready; unused if unordered

	ended taskEnd
	done  []*fed[Out] // tasks that have ended and have not been collected; guarded
}

// A taskEnd is the Source with which an Each waits for the end of a task.
type taskEnd struct {
	guard  suspend.Guard
	some   bool // a task has ended and has not been collected
	waiter suspend.Queue[struct{}, struct{}]
}

func (e *taskEnd) Guard() *suspend.Guard                  { return &e.guard }
func (e *taskEnd) Try() (none struct{}, ok bool, _ error) { return none, e.some, nil }
func (e *taskEnd) Enqueue(r suspend.Resumer[struct{}])    { e.waiter.Push(r, struct{}{}) }
func (e *taskEnd) Remove(r suspend.Resumer[struct{}])     { e.waiter.Remove(r) }

// The type fed is one task of a feed.
type fed[Out any] struct {
	task
	f         *feed[Out]
	out       Out
	err       error
	collected bool
}

func (c *fed[Out]) settled(err error) {
	f := c.f
	f.ended.guard.Lock()
	if c.err = err; err != nil {
		var zero Out
		c.out = zero
	}
	f.done, f.ended.some = append(f.done, c), true
	f.ended.waiter.ResumeAll(struct{}{}, nil)
	f.ended.guard.Unlock()
}

// add records a task that was fed, or that the flow has refused with err.
func (f *feed[Out]) add(c *fed[Out], err error) {
	if err == nil {
		f.flying++
	} else {
		c.err, c.collected = err, true
	}
	switch {
	case !f.unordered:
		f.order.pushBack(c)
		f.promote()
	case err != nil:
		f.ready = append(f.ready, c)
	}
}

// promote moves the answers that can be yielded next from f.order to f.ready.
func (f *feed[Out]) promote() {
	for f.order.len > 0 && (*f.order.of(0)).collected {
		var c *fed[Out]
		f.order.popFront(&c)
		f.ready = append(f.ready, c)
	}
}

// collect waits until a task has ended, and collects all tasks that have ended.
func (f *feed[Out]) collect() { _, _ = f.collectOr(context.Background(), nil) }

// collectOr waits until a task has ended, other is performed, or ctx has ended, and collects all tasks that have ended. It reports
// whether other was performed.
func (f *feed[Out]) collectOr(ctx context.Context, other suspend.Selectable) (performed bool, err error) {
	won, err := f.wait(ctx, other)
	f.ended.guard.Lock()
	done := f.done
	f.done, f.ended.some = nil, false
	f.ended.guard.Unlock()
	for _, c := range done {
		c.collected = true
		f.flying--
	}
	if f.unordered {
		f.ready = append(f.ready, done...)
	} else {
		f.promote()
	}
	return won != nil && won == other, err
}

func (f *feed[Out]) wait(ctx context.Context, other suspend.Selectable) (won suspend.Selectable, err error) {
	if f.from != nil {
		f.from.block(nil)
		defer f.from.goOn(nil)
	}
	return suspend.SelectOrdered(ctx, suspend.CaseOf(suspend.OpOf[struct{}](&f.ended)), other)
}

// pending returns the number of tasks that were fed and have not been yielded. Unless f.unordered is set, an answer may have to wait
// for the answers of earlier tasks.
func (f *feed[Out]) pending() int {
	if f.unordered {
		return f.flying + len(f.ready)
	}
	return f.order.len + len(f.ready)
}

// nextAnswer returns the next task to yield, which must be ready.
func (f *feed[Out]) nextAnswer() (c *fed[Out]) {
	c, f.ready[0] = f.ready[0], nil
	f.ready = f.ready[1:]
	return c
}

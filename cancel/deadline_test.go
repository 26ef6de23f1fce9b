package cancel_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

var errLate = errors.New("late")

// A context with a deadline ends in each possible way. It and its derived contexts report the same error and cause.
func TestDeadlineEnds(t *testing.T) {
	type ctxEnd = func(end context.CancelFunc, parent context.CancelCauseFunc)
	for name, test := range map[string]struct {
		end        ctxEnd
		err, cause error // nil stands for the error of the deadline
	}{
		"in time": {func(context.CancelFunc, context.CancelCauseFunc) { time.Sleep(time.Hour) }, context.DeadlineExceeded, nil},
		"cancelled": {func(end context.CancelFunc, _ context.CancelCauseFunc) {
			end()
			time.Sleep(2 * time.Hour)
		}, context.Canceled, context.Canceled},
		"the parent": {func(_ context.CancelFunc, p context.CancelCauseFunc) { p(errOops); synctest.Wait() }, context.Canceled, errOops},
		"the parent, and then all": {func(end context.CancelFunc, p context.CancelCauseFunc) {
			p(errOops)
			synctest.Wait()
			end()
			time.Sleep(2 * time.Hour)
		}, context.Canceled, errOops},
		"in time, and then all": {func(end context.CancelFunc, p context.CancelCauseFunc) {
			time.Sleep(time.Hour)
			synctest.Wait()
			end()
			p(errOops)
		}, context.DeadlineExceeded, nil},
	} {
		for kind, parent := range map[string]func() (context.Context, context.CancelCauseFunc){
			"std":  func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(bg) },
			"ours": func() (context.Context, context.CancelCauseFunc) { return cancel.New(bg) },
			"a deadline": func() (context.Context, context.CancelCauseFunc) {
				c, end := cancel.New(bg)
				c, _ = cancel.WithTimeoutCause(c, 3*time.Hour, errors.New("much later"))
				return c, end
			},
		} {
			for _, late := range []error{nil, errLate} {
				deadlineEnds(t, name+"/"+kind, late, parent, test.end, test.err, cmp.Or(test.cause, late, context.DeadlineExceeded))
			}
		}
	}
}

func deadlineEnds(t *testing.T, name string, late error, parent func() (context.Context, context.CancelCauseFunc),
	ends func(end context.CancelFunc, parent context.CancelCauseFunc), err, cause error) {
	t.Run(fmt.Sprint(name, " ", late), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, endParent := parent()
			defer endParent(nil)
			ctx, end := cancel.WithTimeoutCause(p, time.Hour, late)
			defer end()
			if at, ok := ctx.Deadline(); !ok || !at.Equal(time.Now().Add(time.Hour)) {
				t.Errorf("deadline %v, %v", at, ok)
			}
			child, endChild := context.WithCancel(ctx)
			defer endChild()
			ours, endOurs := cancel.New(ctx)
			defer endOurs(nil)
			var waited error
			go func() { waited = suspend.Sleep(ctx, 9*time.Hour) }()
			called := 0
			after(ctx, func() {
				if called++; ctx.Err() == nil {
					t.Error("called before the end")
				}
			})
			if synctest.Wait(); ctx.Err() != nil || child.Err() != nil {
				t.Error("over from the beginning")
			}
			ends(end, endParent)
			synctest.Wait()
			for _, c := range []context.Context{ctx, child, ours, context.WithValue(ctx, key{}, 1)} {
				<-c.Done()
				if c.Err() != err || context.Cause(c) != cause {
					t.Errorf("%v: Err %v, cause %v", c, c.Err(), context.Cause(c))
				}
			}
			if !errors.Is(waited, err) || !errors.Is(waited, cause) {
				t.Errorf("a wait was cancelled with %v", waited)
			}
			if called != 1 {
				t.Errorf("called %d times", called)
			}
		})
	})
}

// A context that is made after its deadline has ended from the start. A deadline after the parent's changes nothing.
func TestDeadlinesAtTheEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{0, -time.Hour} {
			if ctx, _ := cancel.WithTimeout(bg, d); ctx.Err() != context.DeadlineExceeded {
				t.Errorf("after %v: %v", d, ctx.Err())
			}
		}
		parent, endParent := context.WithTimeout(bg, time.Minute)
		defer endParent()
		ctx, end := cancel.WithTimeout(parent, time.Hour)
		defer end()
		if at, _ := ctx.Deadline(); !at.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("deadline %v", at)
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); ctx.Err() != context.DeadlineExceeded {
			t.Error(ctx.Err())
		}
		done, stop := context.WithCancelCause(bg)
		stop(errOops)
		if ctx, _ := cancel.WithTimeout(done, time.Hour); ctx.Err() != context.Canceled || context.Cause(ctx) != errOops {
			t.Errorf("with a parent that has ended: %v, %v", ctx.Err(), context.Cause(ctx))
		}
		defer func() {
			if v := recover(); v != "cancel: nil parent" {
				t.Errorf("panic %v", v)
			}
		}()
		//lint:ignore SA1012 the panic is tested
		_, _ = cancel.WithTimeout(nil, time.Hour)
	})
}

// A parent of package context notifies its children in random order, so a context may learn of the end before the context that
// has its cause.
func TestTheCauseOfAParentThatTellsLate(t *testing.T) {
	for range 2000 {
		parent, end := context.WithCancelCause(bg)
		ctx, stop := cancel.WithTimeoutCause(parent, time.Hour, errLate)
		end(errOops)
		<-ctx.Done()
		require.Equal(t, errOops, context.Cause(ctx))
		stop()
	}
}

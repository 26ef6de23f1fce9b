package cancel_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/suspend"
)

// In each way a context with a deadline can end, it and its derived contexts say the same.
func TestDeadlineEnds(t *testing.T) {
	type ctxEnd = func(ctx context.Context, end func(error), parent context.CancelCauseFunc)
	for name, test := range map[string]struct {
		end        ctxEnd
		err, cause error
	}{
		"in time": {func(context.Context, func(error), context.CancelCauseFunc) { time.Sleep(time.Hour) }, context.DeadlineExceeded, context.DeadlineExceeded},
		"cancelled": {func(_ context.Context, end func(error), _ context.CancelCauseFunc) {
			end(nil)
			time.Sleep(2 * time.Hour)
		}, context.Canceled, context.Canceled},
		"with a cause": {func(_ context.Context, end func(error), _ context.CancelCauseFunc) { end(errOops); end(nil) }, context.Canceled, errOops},
		"the parent":   {func(_ context.Context, _ func(error), p context.CancelCauseFunc) { p(errOops); synctest.Wait() }, context.Canceled, errOops},
		"in time, and then all": {func(_ context.Context, end func(error), p context.CancelCauseFunc) {
			time.Sleep(time.Hour)
			synctest.Wait()
			end(errOops)
			p(errOops)
		}, context.DeadlineExceeded, context.DeadlineExceeded},
	} {
		for kind, parent := range map[string]func() (context.Context, context.CancelCauseFunc){
			"std":  func() (context.Context, context.CancelCauseFunc) { return context.WithCancelCause(bg) },
			"ours": func() (context.Context, context.CancelCauseFunc) { c, end := cancel.New(bg); return c, end },
			"a deadline": func() (context.Context, context.CancelCauseFunc) {
				c, end := cancel.WithTimeout(bg, 3*time.Hour)
				return c, end
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, endParent := parent()
					defer endParent(nil)
					ctx, end := cancel.WithTimeout(p, time.Hour)
					defer end(nil)
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
					test.end(ctx, end, endParent)
					synctest.Wait()
					for _, c := range []context.Context{ctx, child, ours, context.WithValue(ctx, key{}, 1)} {
						<-c.Done()
						if c.Err() != test.err || context.Cause(c) != test.cause {
							t.Errorf("%v: Err %v, cause %v", c, c.Err(), context.Cause(c))
						}
					}
					if !errors.Is(waited, test.err) || !errors.Is(waited, test.cause) {
						t.Errorf("a wait was cancelled with %v", waited)
					}
					if called != 1 {
						t.Errorf("called %d times", called)
					}
				})
			})
		}
	}
}

// One that has no time left is over when it is made; and a later deadline than the parent's changes nothing.
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
		defer end(nil)
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
			t.Errorf("of a parent that is over: %v, %v", ctx.Err(), context.Cause(ctx))
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

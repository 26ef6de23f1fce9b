package stops

import (
	"context"
	"time"

	"github.com/braidgo/braid/cancel"
)

var keep func(error)

func wrong(parent context.Context, some bool) context.Context {
	ctx, _ := cancel.New(parent)                      // want `the stop function of cancel.New is not used: the context stays in the memory of its parent until the parent ends`
	ctx, stop := cancel.WithTimeout(ctx, time.Second) // want `stop of cancel.WithTimeout is not called on every path.*the return in line 16`
	if some {
		return ctx
	}
	stop()
	return nil
}

func wrongInLiteral(parent context.Context) func() context.Context {
	return func() context.Context {
		for {
			ctx, stop := cancel.WithDeadline(parent, time.Time{}) // want `stop of cancel.WithDeadline is not called on every path`
			if ctx.Err() != nil {
				return ctx
			}
			defer stop()
		}
	}
}

func right(parent context.Context) (ctx context.Context, stop func(error)) {
	ctx, stop = cancel.New(parent)
	ctx, keep = cancel.New(ctx)
	inner, end := cancel.WithTimeout(ctx, time.Second)
	defer func() { end() }()
	if inner.Err() != nil {
		panic("ended")
	}
	return ctx, stop
}

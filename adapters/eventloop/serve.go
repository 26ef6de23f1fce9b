package eventloop

import (
	"context"
	"net"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Serve accepts connections from a Listener of another package, and runs handler for each as a task of on, which may be
// any scheduler. Use it for a listener that wraps a Listener of a Loop, such as a listener of crypto/tls. For an
// unwrapped Listener see [Listener.Serve]. The connection is bound to the handler's context as by WithContext, and is
// closed when handler ends, however it ends.
//
// Serve suspends its caller. It goes on until ctx is done, until ln fails, or until on refuses a task. Then it closes
// ln, and the handlers have the time grace to end; a negative grace means no limit. After that their context ends, with
// the cause context.DeadlineExceeded, and Serve returns when all have ended. The error is the cancellation error if ctx
// is done by then, and otherwise the error of ln or on. The context of a handler has the values of ctx, but ends only
// so.
//
// A shortage of descriptors or memory is no failure: Serve says so by package slog, and tries again after a while.
func Serve(ctx context.Context, ln net.Listener, on suspend.Spawner, grace time.Duration, handler func(ctx context.Context, c net.Conn)) error {
	if ln == nil || on == nil || handler == nil {
		panic("eventloop: nil listener, scheduler or handler")
	}
	tasks, end := cancel.New(context.WithoutCancel(ctx))
	defer end(nil)
	stop := cancel.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	var running countdown
	running.add(1)
	accepted := promise.New[struct{}]()
	go func() { // Accept may wait natively
		accepted.Fail(acceptAll(ctx, ln, func(c net.Conn) error {
			running.add(1)
			err := on.Go(func() {
				defer running.done()
				defer c.Close()
				handler(tasks, WithContext(tasks, c))
			})
			if err != nil {
				running.done()
				_ = c.Close()
			}
			return err
		}))
	}()
	_, err := accepted.Await(context.Background())
	_ = ln.Close()
	running.done()
	if grace < 0 {
		running.wait()
	} else {
		limit, over := cancel.WithTimeout(context.Background(), grace)
		if running.waitFor(limit) != nil {
			end(context.DeadlineExceeded)
			running.wait()
		}
		over(nil)
	}
	if done := suspend.Err(ctx); done != nil {
		return done
	}
	return err
}

// acceptAll returns the error that ends it.
func acceptAll(ctx context.Context, ln net.Listener, start func(c net.Conn) error) error {
	const first, last = 5 * time.Millisecond, time.Second
	for delay := first; ; {
		c, err := ln.Accept()
		switch {
		case err == nil:
			if err := start(c); err != nil {
				return err
			}
			delay = first
		case !isShortage(err):
			return err
		default:
			noConnection(err, delay)
			select {
			case <-ctx.Done():
			case <-time.After(delay):
			}
			delay = min(2*delay, last)
		}
	}
}

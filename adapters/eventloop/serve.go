package eventloop

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

// Serve accepts connections from ln, and runs handler for each of them, as a task of the given scheduler, or on a plain
// goroutine if on is nil. Use this function for a net.Listener that wraps a Listener of a Loop, such as a listener of
// crypto/tls. For an unwrapped Listener, see [Listener.Serve]. The connection is bound to the handler's context; see
// [WithContext]. Serve closes the connection when handler returns, panics or exits.
//
// Serve suspends its caller. Serve accepts until ctx is done, until ln fails, or until the scheduler refuses a task.
// Then Serve closes ln, and waits until the handlers have ended, at most for the time grace; a negative grace means
// no limit. When that time has passed, Serve cancels the context of the handlers, with the cause
// context.DeadlineExceeded. Serve returns when all handlers have ended. The result is the cancellation error if ctx
// is done by then, and otherwise the error of ln or of the scheduler. A handler's context has the values of ctx, but
// is not cancelled when ctx is done.
//
// If descriptors or memory run out, Serve logs the error with package slog, and tries again after a delay.
func Serve(ctx context.Context, ln net.Listener, on suspend.Spawner, grace time.Duration, handler func(ctx context.Context, c net.Conn)) error {
	if ln == nil || handler == nil {
		panic("eventloop: nil listener or handler")
	}
	on = cmp.Or(on, suspend.Goroutines)
	tasks, end := cancel.New(context.WithoutCancel(ctx))
	defer end(nil)
	stop := cancel.AfterFunc(ctx, func() { _ = ln.Close() })
	defer stop()
	var running countdown
	running.add(1)
	accepted := promise.New[struct{}]()
	go func() { // Accept may block its goroutine
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
		over()
	}
	if done := suspend.Err(ctx); done != nil {
		return done
	}
	return err
}

// acceptAll accepts connections and calls the function start for each. acceptAll returns the first error that is not
// a shortage.
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

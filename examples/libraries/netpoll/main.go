// Netpoll is a server on another library's event loop, github.com/cloudwego/netpoll. Its handlers wait in direct style, without callbacks.
//
// Netpoll's poller passes the work for each connection to a runner. Here the runner is a callback.Loop on one goroutine, so each handler is
// a task. A handler can wait for a promise that a pool fills, or for a lock that a plain goroutine holds, without blocking the poller or
// other handlers. When a client hangs up, its handler is cancelled. Waits inside netpoll are native, so they must be wrapped in
// suspend.Blocking.
//
// A request is one byte, n. The answer is a line with the number of requests served so far and the Fibonacci number of n modulo 41.
//
//	go run . & printf '\50' | nc -q1 127.0.0.1 8080
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/cloudwego/netpoll"
)

type server struct {
	handlers *callback.Loop
	pool     *workstealing.Pool
	ledger   mutex.Mutex // guards the field served, for tasks and for goroutines
	served   int
}

// handle runs as a task.
func (s *server) handle(ctx context.Context, conn netpoll.Connection) error {
	requests, err := conn.Reader().ReadBinary(conn.Reader().Len()) // does not block, because these bytes have arrived
	var answers []byte
	for _, n := range requests {
		answer := promise.Go(ctx, s.pool, func(context.Context) (int, error) { return fib(int(n % 41)), nil })
		if err = s.ledger.LockContext(ctx); err != nil { // suspends the task
			break
		}
		s.served++
		number := s.served
		s.ledger.Unlock()
		var v int
		if v, err = answer.Await(ctx); err != nil { // suspends the task
			break
		}
		answers = fmt.Appendf(answers, "%d: %d\n", number, v)
	}
	if err == nil {
		err = suspend.Blocking(ctx, func() { _, err = conn.Write(answers) })
	}
	if err != nil {
		_ = conn.Close()
	}
	return err
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

// single is an executor that runs functions on one goroutine.
type single chan func()

func (q single) Execute(f func()) error { q <- f; return nil }

// start serves ln until stop is called. A process can run only one such server, because netpoll has one global runner.
func start(ln net.Listener) (s *server, stop func(context.Context) error, err error) {
	exec := make(single)
	go func() {
		for f := range exec {
			f()
		}
	}()
	s = &server{handlers: callback.New(exec, callback.Options{}), pool: workstealing.New(workstealing.Options{})}
	runner := func(_ context.Context, f func()) { _ = s.handlers.Go(f) }
	if err := netpoll.Configure(netpoll.Config{Runner: runner}); err != nil {
		return nil, nil, err
	}
	type cancel struct{}
	loop, err := netpoll.NewEventLoop(s.handle,
		netpoll.WithOnPrepare(func(netpoll.Connection) context.Context {
			ctx, hangUp := context.WithCancel(context.Background())
			return context.WithValue(ctx, cancel{}, hangUp)
		}),
		netpoll.WithOnDisconnect(func(ctx context.Context, _ netpoll.Connection) {
			ctx.Value(cancel{}).(context.CancelFunc)()
		}))
	if err != nil {
		return nil, nil, err
	}
	end := promise.Go(context.Background(), suspend.Goroutines, func(context.Context) (struct{}, error) {
		return struct{}{}, loop.Serve(ln)
	})
	return s, func(ctx context.Context) error {
		if err := loop.Shutdown(ctx); err != nil {
			return err // handlers are still running
		}
		_, err := end.Await(ctx)
		err = errors.Join(err, s.handlers.Close(), s.pool.Close())
		close(exec)
		return err
	}, nil
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	_, stop, err := start(ln)
	if err != nil {
		log.Fatal(err)
	}
	<-ctx.Done()
	if err := stop(context.Background()); err != nil {
		log.Fatal(err)
	}
}

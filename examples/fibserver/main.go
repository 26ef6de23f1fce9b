// Fibserver is an HTTP/1.1 server on two schedulers. Each busy connection is a task of an event loop; an idle one is parked. The answers to GET /fib/N are computed
// with fork and join on a work-stealing pool. A stage connects the two schedulers: its handler runs on the pool. While one task of the loop
// waits for the stage, the loop serves other connections.
//
//	go run ./examples/fibserver                serve on 127.0.0.1:8080 until interrupted
//	go run ./examples/fibserver -debug 127.0.0.1:8081    and show on 127.0.0.1:8081/debug/braid/ which task waits for which
//	go run ./examples/fibserver -load 3s       measure it and two other servers under 3 seconds of load each
//
// The stage computes up to -width numbers in parallel, each for at most -timeout. Further requests are rejected with status 503, and a
// computation that takes longer is answered with 504. The pool shares its workers among the computations, so that a cheap computation does
// not wait for a costly computation.
//
// A client that closes only its writing half still receives its answer. When a connection is reset, its computation is cancelled. A client
// that closes both halves looks like a waiting client until the server writes to it, so its computation runs on until -timeout.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend/census"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "listen address")
	loops := flag.Int("loops", 1, "reactors of the event loop")
	workers := flag.Int("workers", 0, "workers of the pool; 0 for one on each core")
	grace := flag.Duration("grace", 5*time.Second, "how long requests may run after an interrupt")
	var lim limits
	flag.IntVar(&lim.width, "width", 256, "how many numbers may be computed at the same time; further requests are refused")
	flag.DurationVar(&lim.timeout, "timeout", 30*time.Second, "how long a number may be computed")
	debug := flag.String("debug", "", "the address for /debug/braid/, which shows the census of all tasks; without it, the census is off")
	load := flag.Duration("load", 0, "compare this server with two others: load each for this time, in two ways, and print the results")
	drive := flag.String("drive", "", "load the server at this address; used by -load")
	rate := flag.Int("rate", 0, "cheap requests a second, with -drive, or with -load instead of its two loads; 0 for as many as are answered")
	flag.Parse()
	log.SetFlags(0)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *drive != "":
		err = driveAndReport(*drive, *load, *rate)
	case *load > 0:
		err = compare(ctx, *load, *rate, *loops, *workers, lim)
	default:
		if *debug != "" {
			at, stop, failed := startDebug(*debug)
			if failed != nil {
				log.Fatal("fibserver: ", failed)
			}
			defer stop()
			log.Print("the census is on http://", at, "/debug/braid/")
		}
		err = serve(ctx, *addr, *loops, *workers, lim, *grace)
	}
	if err != nil {
		log.Fatal("fibserver: ", err)
	}
}

// serve runs the composed server until ctx ends.
func serve(ctx context.Context, addr string, loops, workers int, lim limits, grace time.Duration) error {
	srv, err := startComposed(addr, loops, workers, lim)
	if err != nil {
		return err
	}
	log.Print("serving on http://", srv.Addr(), "/fib/N")
	<-ctx.Done()
	log.Print("shutting down")
	return srv.Shutdown(grace)
}

// startDebug starts the census, and serves it on addr until stop is called.
func startDebug(addr string) (at net.Addr, stop func(), err error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	off := census.Start(census.Options{})
	mux := http.NewServeMux()
	mux.Handle("/debug/braid/", census.Handler())
	server, done := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(ln)
	}()
	return ln.Addr(), func() {
		_ = server.Close()
		<-done
		off()
	}, nil
}

// composed is a server whose connections run on an event loop. If pool is not nil, its computations run on the pool.
type composed struct {
	*httpServer
	loop *eventloop.Loop
	pool *workstealing.Pool
	fibs *stage.Stage[int, int]
	ln   *eventloop.Listener
	done chan error
}

// limits holds the limits for computations.
type limits struct {
	width   int
	timeout time.Duration
}

func startComposed(addr string, loops, workers int, lim limits) (*composed, error) {
	pool := workstealing.New(workstealing.Options{Workers: workers})
	fibs := stage.New("fib", func(ctx context.Context, n int) (int, error) { return fib(ctx, pool, n) },
		stage.Options{Width: lim.width, Queue: stage.NoQueue, Reject: true, On: pool})
	c, err := startLoop(addr, loops, func(ctx context.Context, n int) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, lim.timeout)
		defer cancel()
		return fibs.Do(ctx, n) // suspends the task, not the loop
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	c.pool, c.fibs = pool, fibs
	return c, nil
}

// startLoop starts a server on an event loop. The server calls the function compute for each answer.
func startLoop(addr string, loops int, compute compute) (*composed, error) {
	loop, err := eventloop.New(eventloop.Options{Loops: loops, IdleTimeout: idleTimeout})
	if err != nil {
		return nil, err
	}
	ln, err := loop.Listen("tcp", addr)
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	c := &composed{httpServer: newHTTPServer(compute), loop: loop, ln: ln, done: make(chan error, 1)}
	go func() { c.done <- ln.ServeParked(c.ctx, c.serveConn) }()
	return c, nil
}

func (c *composed) Addr() net.Addr { return c.ln.Addr() }

// Shutdown stops accepting connections and waits up to grace for the current requests. It then cancels the remaining requests, and closes
// the loop and the pool.
func (c *composed) Shutdown(grace time.Duration) error {
	err := c.ln.Close()
	c.drain()
	timer := time.AfterFunc(grace, c.cancel)
	defer timer.Stop()
	if served := <-c.done; !errors.Is(served, net.ErrClosed) && !errors.Is(served, context.Canceled) {
		err = errors.Join(err, served)
	}
	c.cancel()
	err = errors.Join(err, c.loop.Close())
	if c.pool != nil {
		err = errors.Join(err, c.fibs.Shutdown(context.Background()), c.pool.Close())
	}
	return err
}

// cutOff is the largest n that is computed without forking, because forking would cost more than computing.
const cutOff = 20

// fib computes the nth Fibonacci number recursively, in parallel. It returns soon after ctx ends.
func fib(ctx context.Context, pool *workstealing.Pool, n int) (int, error) {
	if n <= cutOff {
		return sequential(n), nil
	}
	a, b, err := workstealing.Join(ctx, pool,
		func(ctx context.Context) (int, error) { return fib(ctx, pool, n-1) },
		func(ctx context.Context) (int, error) { return fib(ctx, pool, n-2) })
	return a + b, err
}

func sequential(n int) int {
	if n < 2 {
		return n
	}
	return sequential(n-1) + sequential(n-2)
}

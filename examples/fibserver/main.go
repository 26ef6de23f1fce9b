// Fibserver composes two schedulers: the connections of an HTTP/1.1 server are tasks of an event loop, and the
// numbers that it serves, GET /fib/N, are computed by fork and join on a work-stealing pool. A stage connects them:
// its handler is a task of the pool. A task of the loop waits for the stage, but the loop serves other connections.
//
//	go run ./examples/fibserver                serve on 127.0.0.1:8080 until interrupted
//	go run ./examples/fibserver -debug 127.0.0.1:8081    and say on 127.0.0.1:8081/debug/braid/ which task waits for which
//	go run ./examples/fibserver -load 3s       drive it, and two others, with 3 seconds of load each
//
// The stage computes -width numbers in parallel, each for at most -timeout. A further request is refused with 503, and a number that takes
// longer is answered with 504. The pool shares its workers among the numbers, so that a cheap number does not wait for a costly one.
//
// A client that closes its writing half and waits is answered. When a connection is reset, the computation for it ends. A client that
// closes both halves looks like a client that waits, until the server writes to it. Its number is computed until -timeout.
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
	addr := flag.String("addr", "127.0.0.1:8080", "where to serve")
	loops := flag.Int("loops", 1, "reactors of the event loop")
	workers := flag.Int("workers", 0, "workers of the pool; 0: one for each core")
	grace := flag.Duration("grace", 5*time.Second, "how long requests may go on after an interrupt")
	var lim limits
	flag.IntVar(&lim.width, "width", 256, "numbers that are computed at a time; one more is refused")
	flag.DurationVar(&lim.timeout, "timeout", 30*time.Second, "how long a number may be computed")
	debug := flag.String("debug", "", "where to serve /debug/braid/ by net/http, the census of all tasks, which is on then")
	load := flag.Duration("load", 0, "drive the server, and two others, for so long each, under two loads, and print how they do")
	drive := flag.String("drive", "", "drive the server there, for -load (this is what -load starts)")
	rate := flag.Int("rate", 0, "cheap requests a second, for -drive; 0: as many as are answered")
	flag.Parse()
	log.SetFlags(0)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *drive != "":
		err = driveAndReport(*drive, *load, *rate)
	case *load > 0:
		err = compare(ctx, *load, *loops, *workers, lim)
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

// serve runs the composed server until ctx is done.
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

// startDebug switches the census on, and serves it on addr until stop is called.
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

// composed is a server on an event loop, and on a pool unless pool is nil.
type composed struct {
	*httpServer
	loop *eventloop.Loop
	pool *workstealing.Pool
	fibs *stage.Stage[int, int]
	ln   *eventloop.Listener
	done chan error
}

// limits has the limits of the computations.
type limits struct {
	width   int
	timeout time.Duration
}

func startComposed(addr string, loops, workers int, lim limits) (*composed, error) {
	pool := workstealing.New(workstealing.Options{Workers: workers})
	fibs := stage.New("fib", func(ctx context.Context, n int) (int, error) { return fib(ctx, pool, n) },
		stage.Options{Width: lim.width, Queue: stage.NoQueue, Full: stage.FullReject, On: pool})
	c, err := startLoop(addr, loops, func(ctx context.Context, n int) (int, error) {
		ctx, cancel := context.WithTimeout(ctx, lim.timeout)
		defer cancel()
		return fibs.Do(ctx, n) // the task waits, but the loop does not
	})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	c.pool, c.fibs = pool, fibs
	return c, nil
}

// startLoop starts a server on an event loop whose answers come from compute.
func startLoop(addr string, loops int, compute compute) (*composed, error) {
	loop, err := eventloop.New(eventloop.Options{Loops: loops})
	if err != nil {
		return nil, err
	}
	ln, err := loop.Listen("tcp", addr)
	if err != nil {
		return nil, errors.Join(err, loop.Close())
	}
	c := &composed{httpServer: newHTTPServer(compute), loop: loop, ln: ln, done: make(chan error, 1)}
	go func() { c.done <- ln.Serve(c.ctx, c.serveConn) }()
	return c, nil
}

func (c *composed) Addr() net.Addr { return c.ln.Addr() }

// Shutdown accepts no more connections, lets requests end for the time grace, then cancels them, and releases everything.
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
		err = errors.Join(err, c.fibs.Close(context.Background()), c.pool.Close())
	}
	return err
}

// cutOff is the number up to which forking would cost more than computing.
const cutOff = 20

// fib computes the n'th Fibonacci number the slow way, in parallel. It stops soon after ctx is done.
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

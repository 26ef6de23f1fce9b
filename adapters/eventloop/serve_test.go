package eventloop_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
)

// A server uses TLS over a listener of the loop. Its handlers are tasks of the loop.
func ExampleServe() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	ln, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	secure := tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{certificate()}})
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		c, err := tls.Dial("tcp", ln.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			panic(err)
		}
		defer c.Close()
		fmt.Fprintln(c, "hello")
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Print("echoed: ", line)
	}()
	err = eventloop.Serve(ctx, secure, loop, time.Second, func(_ context.Context, c net.Conn) {
		for lines := bufio.NewScanner(c); lines.Scan(); {
			fmt.Fprintln(c, lines.Text())
		}
	})
	fmt.Println(err)
	// Output:
	// echoed: hello
	// context canceled
}

// After the grace period, the context of the handlers ends, and with it their I/O. It has the values of the server's context.
func TestServeGrace(t *testing.T) {
	type key struct{}
	pool := workstealing.New(workstealing.Options{Workers: 1})
	defer pool.Close()
	for name, p := range map[string]struct {
		grace time.Duration
		want  error // the error of the handler's I/O
	}{
		"none":    {0, context.Canceled},
		"short":   {10 * time.Millisecond, context.Canceled},
		"enough":  {time.Minute, nil},
		"forever": {-1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ln := must(net.Listen("tcp", "127.0.0.1:0"))
			ctx, stop := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
			begun, ended := make(chan error, 1), make(chan error, 1)
			served := make(chan error, 1)
			go func() {
				served <- eventloop.Serve(ctx, ln, pool, p.grace, func(ctx context.Context, c net.Conn) {
					begun <- nil
					_, err := io.ReadFull(c, make([]byte, 1))
					if ctx.Value(key{}) != "value" {
						err = errors.New("no value")
					}
					ended <- err
				})
			}()
			c := must(net.Dial("tcp", ln.Addr().String()))
			defer c.Close()
			within(t, func() {
				<-begun
				stop()
				if p.want == nil {
					must(c.Write([]byte("x")))
				}
				require.ErrorIs(t, <-ended, p.want)
				require.ErrorIs(t, <-served, context.Canceled)
			})
			_, err := net.Dial("tcp", ln.Addr().String())
			require.Error(t, err, "the listener is closed")
		})
	}
}

// If the listener fails, Serve returns its error. If the scheduler refuses, Serve returns ErrClosed, and closes the accepted
// connection.
func TestServeFails(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	within(t, func() {
		served := make(chan error, 1)
		go func() {
			served <- eventloop.Serve(context.Background(), ln, suspend.Goroutines, -1, func(context.Context, net.Conn) {})
		}()
		_ = ln.Close()
		require.ErrorIs(t, <-served, net.ErrClosed)

		pool := workstealing.New(workstealing.Options{Workers: 1})
		pool.Close()
		ln = must(net.Listen("tcp", "127.0.0.1:0"))
		go func() {
			served <- eventloop.Serve(context.Background(), ln, pool, -1, func(context.Context, net.Conn) { t.Error("it runs") })
		}()
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
		require.ErrorIs(t, <-served, suspend.ErrClosed)
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	})
	require.Panics(t, func() { _ = eventloop.Serve(context.Background(), nil, suspend.Goroutines, 0, nil) })
}

// Serve suspends its caller, so other tasks of the caller's scheduler run.
func TestServeSuspends(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	ctx, stop := context.WithCancel(context.Background())
	within(t, func() {
		sched := fifo.New(fifo.Options{})
		err := sched.Run(context.Background(), func(context.Context) error {
			require.NoError(t, sched.Go(stop))
			return eventloop.Serve(ctx, ln, sched, 0, func(context.Context, net.Conn) {})
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A nil Spawner means plain goroutines.
func TestServeOnANilSpawner(t *testing.T) {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	within(t, func() {
		served, handled := make(chan error, 1), make(chan suspend.Task, 1)
		go func() {
			served <- eventloop.Serve(ctx, ln, nil, -1, func(context.Context, net.Conn) { handled <- suspend.Current() })
		}()
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
		require.Nil(t, <-handled)
		stop()
		require.ErrorIs(t, <-served, context.Canceled)
	})
}

//go:build linux || darwin

package eventloop_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/braidgo/braid/adapters/eventloop"
)

// Without descriptors to accept with, what waits in the backlog is served once there are some again, though no
// event tells of it; and a Close does not wait for the next try.
func TestAcceptWaitsOutAShortage(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	const clients = 5
	for range clients {
		c := must(net.Dial("tcp", ln.Addr().String()))
		defer c.Close()
	}
	var limit syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	must(0, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	handled := make(chan struct{}, clients)
	serve := func(ctx context.Context) chan error {
		served := make(chan error, 1)
		go func() {
			served <- ln.Serve(ctx, func(context.Context, net.Conn) { handled <- struct{}{} })
		}()
		suspended(t, l, 1)
		return served
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := serve(ctx)
	cancel()
	within(t, func() {
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	served = serve(context.Background())
	must(0, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	within(t, func() {
		for range clients {
			<-handled
		}
	})
	ln.Close()
	within(t, func() { <-served })
}

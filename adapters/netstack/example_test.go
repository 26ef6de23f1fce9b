package netstack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/netstack"
)

// A server that uses its listener through an interface runs unchanged over any TCP.
type listener interface {
	Serve(ctx context.Context, handler func(ctx context.Context, c net.Conn)) error
	Addr() net.Addr
	Close() error
}

// upper is the server, which answers in upper case. Each connection has a task.
func upper(ln listener) error {
	return ln.Serve(context.Background(), func(_ context.Context, c net.Conn) {
		b := make([]byte, 100)
		for n, err := c.Read(b); err == nil; n, err = c.Read(b) {
			_, _ = c.Write([]byte(strings.ToUpper(string(b[:n]))))
		}
	})
}

// The same server runs over the TCP of the kernel and over that of the application. They differ only in the lines with Listen.
func Example() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()
	kernels, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}

	here, there := netstack.Pair(netstack.WireOptions{Loss: .01, Seed: 1})
	server, err := netstack.New(netstack.Options{Link: here, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}, On: loop})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := netstack.New(netstack.Options{Link: there, Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	own, err := server.Listen("tcp", "10.0.0.1:7")
	if err != nil {
		panic(err)
	}

	ask := func(ln listener, dial func() (net.Conn, error)) {
		ended := make(chan error)
		go func() { ended <- upper(ln) }()
		c, err := dial()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(c, "hello")
		b := make([]byte, 5)
		_, err = io.ReadFull(c, b)
		fmt.Println(string(b), err)
		_, _ = c.Close(), ln.Close()
		fmt.Println(errors.Is(<-ended, net.ErrClosed))
	}
	ask(kernels, func() (net.Conn, error) { return net.Dial("tcp", kernels.Addr().String()) })
	ask(own, func() (net.Conn, error) { return client.Dial(context.Background(), "tcp", "10.0.0.1:7") })
	// Output:
	// HELLO <nil>
	// true
	// HELLO <nil>
	// true
}

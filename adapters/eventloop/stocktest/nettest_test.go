package stocktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/braidgo/braid/adapters/eventloop"
)

// TestConn runs the tests of golang.org/x/net for a net.Conn. The ends of a connection are on two reactors, if the loop has
// several.
func TestConn(t *testing.T) {
	for _, loops := range []int{1, 3} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(fmt.Sprint(network, ", reactors: ", loops), func(t *testing.T) {
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "socket")
				}
				nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
					loop, err := eventloop.New(eventloop.Options{Loops: loops})
					if err != nil {
						return nil, nil, nil, err
					}
					ln, err := loop.Listen(network, address)
					if err != nil {
						return nil, nil, nil, err
					}
					if c1, err = loop.Dial(context.Background(), network, ln.Addr().String()); err != nil {
						return nil, nil, nil, err
					}
					if c2, err = ln.Accept(); err != nil {
						return nil, nil, nil, err
					}
					return c1, c2, func() {
						_, _ = c1.Close(), c2.Close() // a test may have closed them
						if err := errors.Join(ln.Close(), loop.Close()); err != nil {
							t.Error(err)
						}
					}, nil
				})
			})
		}
	}
}

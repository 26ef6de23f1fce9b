package eventloop_test

import (
	"bufio"
	"context"
	"fmt"
	"net"

	"github.com/braidgo/braid/adapters/eventloop"
)

// An echo server and its client are tasks of a loop, in direct style. A Read that has to wait lets the other tasks run.
func Example() {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()

	ln, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		c, err := loop.Dial(ctx, "tcp", ln.Addr().String())
		if err != nil {
			panic(err)
		}
		defer stop()
		defer c.Close()
		fmt.Fprintln(c, "hello")
		line, _ := bufio.NewReader(c).ReadString('\n')
		fmt.Print("echoed: ", line)
	}()

	err = ln.Serve(ctx, func(ctx context.Context, c net.Conn) {
		for lines := bufio.NewScanner(c); lines.Scan(); {
			fmt.Fprintln(c, lines.Text())
		}
	})
	fmt.Println(err)
	// Output:
	// echoed: hello
	// context canceled
}

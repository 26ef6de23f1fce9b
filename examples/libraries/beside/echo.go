package beside

import (
	"bufio"
	"context"
	"net"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
)

// echo sends each line back to its client, on an event loop, until ctx ends. Clients then have one second to finish.
func echo(ctx context.Context, ln *eventloop.Listener) error {
	clients, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	defer context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(clients, time.Second)
		defer cancel()
		_ = ln.Shutdown(grace)
		hangUp()
	})()
	return ln.Serve(clients, func(_ context.Context, c net.Conn) {
		for in := bufio.NewReader(c); ; {
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if _, err := c.Write([]byte(line)); err != nil {
				return
			}
		}
	})
}

// Chat is a TCP chat server made of actors. Connections run on an event loop, and rooms run on a work-stealing pool.
//
//	go run ./examples/chat -listen 127.0.0.1:7000
//	nc 127.0.0.1 7000        # the first line is your name; then send /join ROOM, /who, or text
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"

	"github.com/braidgo/braid/actor"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7000", "the `address`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, func(a net.Addr) { fmt.Println("listening on", a) }); err != nil {
		log.Fatal(err)
	}
}

// run runs the server until ctx ends.
func run(ctx context.Context, address string, listening func(net.Addr)) error {
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return err
	}
	defer loop.Close()
	ln, err := loop.Listen("tcp", address)
	if err != nil {
		return err
	}
	lobby := actor.Spawn(ctx, pool, rooms(pool), actor.Options[*enter]{})
	listening(ln.Addr())
	err = ln.Serve(ctx, func(ctx context.Context, c net.Conn) { // the loop calls this function in a task for each connection
		if err := converse(ctx, c, lobby); err != nil {
			log.Print(err)
		}
	})
	stopped := lobby.Wait(context.Background()) // the lobby must end before the pool is closed
	if ctx.Err() != nil && errors.Is(stopped, context.Canceled) {
		return nil
	}
	return err
}

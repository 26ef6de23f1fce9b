// Command websocket is a stock http.Server whose WebSocket connections have no goroutine while they wait for a message. Its handler
// upgrades a request with gobwas/ws, which keeps no state of a connection between two messages, moves the connection to an event loop,
// and returns. A connection that waits takes about 1 KB.
//
//	cd examples/libraries/websocket
//	go run .                         serve on ws://127.0.0.1:8080 until interrupted
//	go run . -idle 5000              the bytes of a connection that waits, here and with goroutines
//
// The server may be any http.Server: of net/http, of adapters/httppark, or with a listener of the loop. Over TLS a connection keeps its
// goroutine and a buffer, because crypto/tls reads from its own connection only: let the proxy in front end TLS.
//
// Other code may write to a parked connection at any time: the methods of an eventloop.Conn are for all goroutines and tasks.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/httppark"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "listen address")
	idle := flag.Int("idle", 0, "measure this number of `connections`, instead of serving")
	server := flag.Int("serve", -1, "serve as the `server` with this number; used by the measuring process")
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case *server >= 0:
		err = serveMeasured(*server)
	case *idle > 0:
		err = measureAll(*idle)
	default:
		err = serve(ctx, *addr)
	}
	if err != nil {
		log.Fatal("websocket: ", err)
	}
}

// serve serves until ctx is done. Connections that are not upgraded are parked by httppark.
func serve(ctx context.Context, addr string) error {
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return err
	}
	h := newHub(loop, echo)
	srv := &httppark.Server{Server: &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: 10 * time.Second}}
	served := make(chan error, 1)
	go func() { served <- srv.ListenAndServe() }()
	log.Print("serving on ws://", addr)
	select {
	case <-ctx.Done():
		err = nil
	case err = <-served:
		served <- err
	}
	limit, over := context.WithTimeout(context.Background(), 10*time.Second)
	defer over()
	err = errors.Join(err, srv.Shutdown(limit))
	if e := <-served; !errors.Is(e, http.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return errors.Join(err, h.Shutdown(limit), loop.Close()) // the loop last: the connections are its own
}

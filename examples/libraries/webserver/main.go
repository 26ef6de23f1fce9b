// Webserver serves the files of a directory. Like the web server of Li and Zdancewic (2007), it has a task of an event loop for each
// connection, a cache in memory, asynchronous disk reads with io_uring, and a TCP implementation that is chosen in one line.
//
//	go run . -dir ../..                                   serve on 127.0.0.1:8080 until interrupted
//	curl -i --compressed 127.0.0.1:8080/README.md
//	curl 127.0.0.1:8080/-/stages                          show the stages; a browser gets a page
//	go run . -stack tun0=10.0.0.2/24 -addr 10.0.0.2:80    serve with a user-space TCP over a TUN device (Linux, as root)
//	ip address add 10.0.0.1/24 dev tun0; ip link set tun0 up txqueuelen 10000    while it serves, for the clients' end of the device
//
// A request for a cached file passes only a cache stage. There is one such stage for each reactor, with its share of the files. A cache
// stage has a width of 1, so that its state needs no lock. Requests for other files also pass the disk stage, with up to 256 parallel reads,
// and a third stage that compresses text. When the disk stage is overloaded, its requests are answered with status 503 at once, but cached
// files are still served. An idle stage of the loop runs its handler in the connection's task, so a cached file needs no task switch.
//
// The package fasthttp parses requests and formats responses. It uses a net.Conn, so that it runs unchanged in a task.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
)

func main() {
	o := options{ready: func(at net.Addr) { log.Printf("serving on http://%s/", at) }}
	flag.StringVar(&o.addr, "addr", "127.0.0.1:8080", "listen address")
	flag.StringVar(&o.stack, "stack", "", "serve on the program's own TCP stack: `device=prefix` has the name of a TUN device to create, and its address")
	flag.StringVar(&o.dir, "dir", ".", "directory of the files")
	flag.IntVar(&o.loops, "loops", 1, "reactors of the event loop")
	flag.IntVar(&o.cache, "cache", 100, "size of the file cache, in megabytes")
	flag.BoolVar(&o.direct, "direct", false, "bypass the system's page cache, for more files than fit in memory")
	flag.DurationVar(&o.grace, "grace", 5*time.Second, "how long requests may run after an interrupt")
	flag.Parse()
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.serve(ctx); err != nil {
		log.Fatal("webserver: ", err)
	}
}

type options struct {
	addr, stack, dir string
	loops, cache     int
	direct           bool
	grace            time.Duration
	ready            func(net.Addr)
}

// A listener accepts connections. Both eventloop and netstack have such listeners.
type listener interface {
	Serve(ctx context.Context, handler func(ctx context.Context, c net.Conn)) error
	Addr() net.Addr
	Close() error
}

// serve runs the server until ctx ends. It then stops accepting connections and waits for the current requests, but cancels them after
// o.grace.
func (o options) serve(ctx context.Context) (err error) {
	loop, err := eventloop.New(eventloop.Options{Loops: o.loops})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, loop.Close()) }()
	var ln listener
	if o.stack != "" {
		stack, failed := newStack(loop, o.stack)
		if failed != nil {
			return failed
		}
		defer stack.Close()
		ln, err = stack.Listen("tcp", o.addr) // this line chooses the TCP implementation
	} else {
		ln, err = loop.Listen("tcp", o.addr)
	}
	if err != nil {
		return err
	}
	s := newSite(loop, o.loops, o.cache<<20, onDisk(loop, o.dir, o.direct))
	f := newFront(s)
	o.ready(ln.Addr())
	served := make(chan error, 1)
	go func() { served <- ln.Serve(f.ctx, f.serve) }()
	select {
	case err := <-served: // the listener has failed
		return errors.Join(err, s.close())
	case <-ctx.Done():
	}
	err = ln.Close()
	f.drain()
	defer time.AfterFunc(o.grace, func() { f.cancel(nil) }).Stop()
	<-served // the error is net.ErrClosed or comes from f.cancel
	return errors.Join(err, s.close())
}

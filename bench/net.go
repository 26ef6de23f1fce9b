package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/cloudwego/netpoll"
)

// Servers. All rounds of a side meet the same server, and the server of the other side is idle meanwhile.

// A server answers connections until b ends.
type server func(b *bench, handle handler) net.Addr

type handler = func(ctx context.Context, c net.Conn)

// onLoop is a loop with so many reactors.
func onLoop(reactors int) server {
	return func(b *bench, handle handler) net.Addr {
		ln := must(b.loop(eventloop.Options{Loops: reactors}).Listen("tcp", "127.0.0.1:0"))
		go ln.Serve(bg, handle)
		return ln.Addr()
	}
}

// onNet is one of net, with a goroutine for each connection.
func onNet(b *bench, handle handler) net.Addr {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	b.close(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); handle(bg, c) }()
		}
	}()
	return ln.Addr()
}

// onNetpoll echoes in the way that its documentation shows: the input is copied into the buffer of the writer.
func onNetpoll(b *bench, _ handler) net.Addr {
	ln := must(netpoll.CreateListener("tcp", "127.0.0.1:0"))
	loop := must(netpoll.NewEventLoop(func(_ context.Context, c netpoll.Connection) error {
		in, out := c.Reader(), c.Writer()
		data, err := in.Next(in.Len())
		if err != nil {
			return err
		}
		answer, err := out.Malloc(len(data))
		if err != nil {
			return err
		}
		copy(answer, data)
		return errors.Join(in.Release(), out.Flush())
	}))
	go func() { _ = loop.Serve(ln) }()
	b.close(func() {
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		_ = loop.Shutdown(ctx)
	})
	return ln.Addr()
}

// besideServer compares servers of the same handler, by a client in another process. Connecting, and a warm-up of a fifth, are not counted
// (wrk counts them, where it is the client).
func besideServer(what string, conns int, ours, peer server, handle handler) func(b *bench) (side, side) {
	return func(b *bench) (side, side) {
		switch {
		case what == "http" && wrk() != "":
			b.note("client: wrk")
		case what == "http":
			b.note("client: a thread on epoll")
		}
		conns := max(2, b.of(conns, conns/100))
		return driven(what, ours(b, handle), conns), driven(what, peer(b, handle), conns)
	}
}

// serveHTTP knows no more than it has to: requests without a body, and one answer.
func serveHTTP(_ context.Context, c net.Conn) {
	buf, n := make([]byte, 4096), 0
	answer := []byte(response)
	for {
		m, err := c.Read(buf[n:])
		if err != nil {
			return
		}
		n += m
		for {
			end := bytes.Index(buf[:n], []byte("\r\n\r\n"))
			if end < 0 {
				break
			}
			if !bytes.HasPrefix(buf, []byte("GET ")) {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
			n = copy(buf, buf[end+4:n])
		}
	}
}

func echo(_ context.Context, c net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err == nil {
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// tlsEcho is crypto/tls as it is, on either end. The handshakes are not counted. A third of the work is cryptography, which the goroutines
// do on all processors, so the loop has a reactor for each.
func tlsEcho(b *bench) (ours, peer side) {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	return besideServer("tls", 200, onLoop(runtime.GOMAXPROCS(0)), onNet, func(ctx context.Context, c net.Conn) { echo(ctx, tls.Server(c, config)) })(b)
}

// The curves of the Fibonacci server are the figures 6.1 and 6.2 of the thesis. Every costly-th request is for fib(32), some ten
// milliseconds, as long as the Go scheduler lets a goroutine have a processor. The others are for fib(1). Each server is a process of its
// own, and so is the client, which has one processor at most.
const (
	costly   = 100
	cheapN   = 1
	costlyN  = 32
	fibConns = 64
)

// fibServers have a number of processors beyond those of their workers. The composed server also exists with one more, for its reactor.
// Otherwise the workers hold all of them, and a reactor that a descriptor wakes waits until one of them is preempted.
var fibServers = []struct {
	name   string
	more   int
	series string
}{
	{"composed", 0, "event loop + work-stealing pool"},
	{"composed", 1, "event loop + work-stealing pool, GOMAXPROCS one more"},
	{"inline", 0, "event loop that computes inline"},
	{"net/http", 0, "net/http, a goroutine for each connection"},
	{"goroutines", 0, "the handler of the loops on net, goroutines"},
}

func fibSeries() (all []string) {
	for _, s := range fibServers {
		all = append(all, s.series)
	}
	return all
}

// fibServed measures each server with so many workers at this rate.
func fibServed(b *bench, workers int, rate float64) (all []measurement) {
	for _, s := range fibServers {
		addr := serving[string](b, []string{fmt.Sprintf("GOMAXPROCS=%d", workers+s.more)}, serveArg, s.name, strconv.Itoa(workers))
		all = append(all, func() []float64 {
			d := time.Duration(b.of(800, 50)) * time.Millisecond
			r := itself[fibReport]([]string{"GOMAXPROCS=1"}, driveArg, "fib", addr, fmt.Sprint(rate), d.String())
			return []float64{r.PerSecond, r.P90 * 1e3}
		})
	}
	return all
}

// serveArg makes a process a Fibonacci server, of a name and a number of workers.
const serveArg = "-serve"

// serveHere prints the address of the server, and waits for the end of the standard input.
func serveHere(args []string) any {
	if len(args) != 2 {
		ok(errors.New(serveArg + " is what the curves of the server start it with"))
	}
	b, workers := new(bench), must(strconv.Atoi(args[1]))
	inline := func(_ context.Context, n int) (int, error) { return fibSerial(n), nil }
	var addr net.Addr
	switch args[0] {
	case "composed":
		forking.pool, forking.cut = workstealing.New(workstealing.Options{Workers: workers}), 20
		addr = onLoop(1)(b, serveFib(func(ctx context.Context, n int) (int, error) {
			answer := promise.New[int]()
			if err := forking.pool.Go(func() { _ = answer.Resolve(fib(ctx, n)) }); err != nil {
				return 0, err
			}
			return answer.Await(ctx)
		}))
	case "inline":
		addr = onLoop(workers)(b, serveFib(inline))
	case "goroutines":
		addr = onNet(b, serveFib(inline))
	default:
		ln := must(net.Listen("tcp", "127.0.0.1:0"))
		addr = ln.Addr()
		mux := http.NewServeMux()
		mux.HandleFunc("GET /fib/{n}", func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.PathValue("n"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Fprintln(w, fibSerial(n))
		})
		go func() { _ = http.Serve(ln, mux) }()
	}
	fmt.Printf("%q\n", addr)
	return must(io.Copy(io.Discard, os.Stdin))
}

// serveFib is the handler of all servers but that of net/http, which watches for clients that leave, and has timeouts, and
// more. examples/fibserver has them too. So the comparison with net/http flatters the other servers here.
func serveFib(compute func(context.Context, int) (int, error)) handler {
	return func(ctx context.Context, c net.Conn) {
		in := bufio.NewReader(c)
		var out []byte
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			number, _ := strings.CutPrefix(r.URL.Path, "/fib/")
			n, err := strconv.Atoi(number)
			if err != nil {
				return
			}
			v := n
			if n >= 2 {
				if v, err = compute(ctx, n); err != nil {
					return
				}
			}
			body := strconv.Itoa(v) + "\n"
			out = fmt.Appendf(out[:0], "HTTP/1.1 200 OK\r\nDate: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
				time.Now().UTC().Format(http.TimeFormat), len(body), body)
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}
}

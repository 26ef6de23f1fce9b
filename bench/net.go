package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/cloudwego/netpoll"
	"golang.org/x/sync/errgroup"
)

// All rounds of a side use the same server. While one side is measured, the other side's server is idle.

// A server is a function that starts a network server and returns its address. The network server runs until b ends.
type server func(b *bench, handle handler) net.Addr

type handler = func(ctx context.Context, c net.Conn)

// onLoop serves connections on an event loop with the given number of reactors.
func onLoop(reactors int) server {
	return func(b *bench, handle handler) net.Addr {
		ln := must(b.loop(eventloop.Options{Loops: reactors}).Listen("tcp", "127.0.0.1:0"))
		go ln.Serve(bg, handle)
		return ln.Addr()
	}
}

// onNet serves connections with package net and a goroutine for each connection.
func onNet(b *bench, handle handler) net.Addr {
	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	b.close(func() { ln.Close() })
	go func() {
		for c, err := ln.Accept(); err == nil; c, err = ln.Accept() {
			go func() { defer c.Close(); handle(bg, c) }()
		}
	}()
	return ln.Addr()
}

// onNetpoll echoes as the documentation of netpoll shows, by copying the input into the writer's buffer.
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

// besideServer compares two servers that run the same handler, with a client in another process. The time to connect, and a warm-up of a
// fifth of the duration, are not counted.
func besideServer(what string, conns int, ours, peer server, handle handler) opener {
	return func(b *bench) (side, side) {
		conns := max(2, b.of(conns, conns/100))
		return b.driven(what, ours(b, handle), conns), b.driven(what, peer(b, handle), conns)
	}
}

// serveHTTP sends the same answer to every request. It expects GET requests without a body, because the client sends no other requests.
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

// tlsEcho uses crypto/tls unchanged, at both ends. The handshakes are not counted. A third of the work is cryptography, which goroutines
// perform on all processors, so the loop has a reactor for each processor.
func tlsEcho(b *bench) (ours, peer side) {
	certified := httptest.NewTLSServer(nil)
	b.close(certified.Close)
	config := &tls.Config{Certificates: certified.TLS.Certificates}
	handle := func(ctx context.Context, c net.Conn) { echo(ctx, tls.Server(c, config)) }
	return besideServer("tls", 200, onLoop(runtime.GOMAXPROCS(0)), onNet, handle)(b)
}

// The clients run in another process on the same machine, so their processor time affects both sides.

const (
	echoed      = 64 // bytes in each direction
	httpRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
	response    = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"
)

// driven returns a side that measures the nanoseconds per operation of the server at addr.
func (b *bench) driven(what string, addr net.Addr, conns int) side {
	return func() float64 {
		return itself[float64](nil, "-drive", what, addr.String(), strconv.Itoa(conns), max(100*time.Millisecond, min(10*b.Round, time.Second)).String())
	}
}

// driveHere is the client. The arguments are the kind of server, the address, the number of connections and the duration.
func driveHere(args []string) any {
	addr, conns, d := args[1], must(strconv.Atoi(args[2])), must(time.ParseDuration(args[3]))
	switch args[0] {
	case "http":
		return driveTCP(addr, conns, d, httpRequest, "HTTP/1.1 200 ", len(response))
	case "net/http":
		return driveTCP(addr, conns, d, httpRequest, "HTTP/1.1 200 ", answerSize(addr))
	case "pauses":
		return driveConns(conns, max(d, 4*pause), pause, httpRequest, "HTTP/1.1 200 ", answerSize(addr), func() net.Conn { return must(net.Dial("tcp", addr)) })
	case "echo":
		return driveTCP(addr, conns, d, strings.Repeat("e", echoed), "e", echoed)
	case "tls":
		return driveConns(conns, d, 0, strings.Repeat("e", echoed), "e", echoed, func() net.Conn {
			return must(tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}))
		})
	}
	return must[any](nil, fmt.Errorf("unknown benchmark %q", args[0]))
}

// driveConns keeps one request in flight on each connection, with a goroutine for each connection, which waits for the pause before each
// further request. It checks the beginning and the length of each answer. A warm-up of a fifth of d is not counted.
func driveConns(conns int, d, pause time.Duration, ask, begin string, size int, dial func() net.Conn) float64 {
	var trips atomic.Int64
	var over atomic.Bool
	var all errgroup.Group
	open := make([]net.Conn, conns)
	for i := range open {
		open[i] = dial()
	}
	for _, c := range open {
		all.Go(func() error {
			request, prefix, buf := []byte(ask), []byte(begin), make([]byte, size)
			for !over.Load() {
				_, err := c.Write(request)
				if err == nil {
					_, err = io.ReadFull(c, buf)
				}
				if err == nil && !bytes.HasPrefix(buf, prefix) {
					err = fmt.Errorf("the server said %q", buf)
				}
				if err != nil {
					return err
				}
				trips.Add(1)
				time.Sleep(pause)
			}
			return nil
		})
	}
	time.Sleep(d / 5)
	start, before := time.Now(), trips.Load()
	time.Sleep(d)
	n, took := trips.Load()-before, time.Since(start)
	over.Store(true)
	if ok(all.Wait()); n == 0 {
		ok(errors.New("no answers"))
	}
	return float64(took) / float64(n)
}

// The rows of fibserver compare two servers of examples/fibserver: the composed server, which is a loop with a pool, must be faster than
// net/http. The program measures its servers itself, one after another, for two seconds each, with a client in a separate process. On 16
// connections the client requests fib(1), and on 2 connections fib(35). Each run of the program is one round of all these rows.
//
// The row for costly requests has no must. Each connection sends a new request when it receives an answer, so the two kinds of requests
// compete for the processors. A server that answers ten times as many cheap requests has less time left for costly requests.

// fibRow compares a cost of the composed server with the same cost of net/http.
func fibRow(cost string) opener {
	return func(b *bench) (ours, peer side) {
		of := func(server string) side {
			return b.kept("fibserver", func() map[string]float64 {
				run := map[string]float64{}
				for _, s := range runFibserver(b, 0, 0) {
					run[s.name+" p90"], run[s.name+" throughput"], run[s.name+" costly"] = float64(s.p90), 1e9/(s.cheap+s.costly), 1e9/s.costly
				}
				return run
			}, server+" "+cost)
		}
		return of("composed"), of("net/http")
	}
}

var fibLoads = regexp.MustCompile(`(?m)^(composed|inline|net/http): .*\n\s+/fib/1 +(\d+) req/s .*\bp90 +(\S+) .*\n\s+/fib/35 +(\d+) req/s `)

// A fibServed is what one of the servers has done, in requests per second.
type fibServed struct {
	name          string
	cheap, costly float64
	p90           time.Duration // of the cheap requests
}

// runFibserver runs the program with the given number of processors for each process, or with all, and with the given rate of cheap
// requests, or with as many as are answered.
func runFibserver(b *bench, procs, rate int) (all []fibServed) {
	cmd := exec.Command(built("fibserver"), "-load", fmt.Sprint(time.Duration(b.of(2000, 50))*time.Millisecond), "-rate", strconv.Itoa(rate))
	if procs > 0 {
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	}
	out := must(cmd.Output())
	for _, s := range fibLoads.FindAllStringSubmatch(string(out), len(fibSeries)) { // the program measures them again under an equal load
		cheap, p90, costly := must(strconv.ParseFloat(s[2], 64)), must(time.ParseDuration(s[3])), must(strconv.ParseFloat(s[4], 64))
		all = append(all, fibServed{s[1], max(cheap, 1), max(costly, 1), p90})
	}
	if len(all) != len(fibSeries) {
		ok(fmt.Errorf("the output of the example does not have three servers:\n%s", out))
	}
	return all
}

// fibSeries are the servers of fibserver in the order in which it prints them.
var fibSeries = []string{"composed: an event loop and a pool", "inline: an event loop", "net/http"}

// fibCurves reproduces figures 6.1 and 6.2 of Ande's thesis (2023): the cheap requests on x processors, and at a rate of x a second.
func fibCurves() (all []curve) {
	for _, sweep := range []struct {
		suffix, about, x string
		points, tiny     []float64
		run              func(b *bench, x int) []fibServed
	}{
		{"-cores", "16 connections request /fib/1 and 2 request /fib/35, in closed loops. The client is another process with the same GOMAXPROCS.",
			"processors of each process (GOMAXPROCS)", processors(), []float64{1}, func(b *bench, x int) []fibServed { return runFibserver(b, x, 0) }},
		{"-rate", "The requests for /fib/1 come at this rate, in an open loop, and 2 connections request /fib/35 in a closed loop. " +
			"A latency counts from the time at which the request was due.",
			"requests for /fib/1 a second", []float64{250, 1000, 4000, 8000, 16_000, 32_000}, []float64{250}, func(b *bench, x int) []fibServed { return runFibserver(b, 0, x) }},
	} {
		for _, axis := range [][2]string{{"", "answers to /fib/1 a second"}, {"-p90", "p90 of /fib/1 in ms"}} {
			suffix, label := axis[0], axis[1]
			all = append(all, curve{
				figure: figure{ID: "fibserver" + sweep.suffix + suffix, Title: "Requests for small and large Fibonacci numbers",
					About: sweep.about, X: sweep.x, LogX: true, Y: label, LogY: true, Rounds: 3},
				series: fibSeries, points: sweep.points, tiny: sweep.tiny, cold: true,
				open: func(b *bench, x float64) (sides []side) {
					for _, name := range fibSeries {
						sides = append(sides, b.kept(fmt.Sprint("fibserver", sweep.suffix, x), func() map[string]float64 {
							run := map[string]float64{}
							for i, s := range sweep.run(b, int(x)) {
								run[fibSeries[i]], run[fibSeries[i]+"-p90"] = s.cheap, float64(s.p90)/1e6
							}
							return run
						}, name+suffix))
					}
					return sides
				},
			})
		}
	}
	return all
}

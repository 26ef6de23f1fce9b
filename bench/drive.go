package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// The clients run in another process on the same machine, so their processor time affects both sides.

// driveArg is the argument that starts this program as a client. It is followed by the kind of server, the address, the number of
// connections and the duration.
const driveArg = "-drive"

const (
	echoed      = 64 // bytes in each direction
	httpRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
	response    = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"
)

// driven returns a side that measures the nanoseconds per operation of the server at addr.
func driven(what string, addr net.Addr, conns int) side {
	return func(d time.Duration) float64 {
		return itself[float64](nil, driveArg, what, addr.String(), strconv.Itoa(conns), min(10*d, time.Second).String())
	}
}

func driveHere(args []string) any {
	if len(args) != 4 {
		ok(errors.New(driveArg + " is what the rows of servers start their client with"))
	}
	addr, conns, d := args[1], must(strconv.Atoi(args[2])), must(time.ParseDuration(args[3]))
	switch args[0] {
	case "http":
		return driveTCP(addr, conns, d, httpRequest, "HTTP/1.1 200 ", len(response))
	case "echo":
		return driveTCP(addr, conns, d, strings.Repeat("e", echoed), "e", echoed)
	case "tls":
		return driveConns(conns, d, strings.Repeat("e", echoed), "e", echoed, func() net.Conn {
			return must(tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true}))
		})
	}
	return must[any](nil, fmt.Errorf("nothing drives %q", args[0]))
}

// driveConns keeps one request in flight on each connection, with a goroutine for each connection. It checks the beginning and the length
// of each answer. A warm-up of a fifth of d is not counted.
func driveConns(conns int, d time.Duration, ask, begin string, size int, dial func() net.Conn) float64 {
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

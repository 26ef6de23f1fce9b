package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// The clients of the servers. They are in a process of their own, on the same machine, so their processor time counts against both sides.

// driveArg makes a process a client. The kind of server, its address, the number of connections and the duration follow.
const driveArg = "-drive"

const (
	echoed      = 64 // bytes there and back
	httpRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
	response    = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"
)

// wrk is where wrk is installed, empty where it is not.
var wrk = sync.OnceValue(func() string {
	path, _ := exec.LookPath("wrk")
	return path
})

// driven measures the nanoseconds per operation of the server at addr. For HTTP the client is wrk where there is one, for whole seconds.
func driven(what string, addr net.Addr, conns int) side {
	return func(d time.Duration) float64 {
		d = min(10*d, time.Second)
		if what == "http" && wrk() != "" {
			seconds := int(max(1, (d+time.Second/2)/time.Second))
			out, err := exec.Command(wrk(), "-t1", fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%ds", seconds),
				"http://"+addr.String()+"/").CombinedOutput()
			if err != nil {
				ok(fmt.Errorf("%w: %s", err, out))
			}
			return must(parseWrk(string(out)))
		}
		return itself[float64](nil, driveArg, what, addr.String(), strconv.Itoa(conns), d.String())
	}
}

var wrkRate = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)$`)

// parseWrk finds the rate in what wrk prints, which must not speak of errors.
func parseWrk(out string) (each float64, err error) {
	found := wrkRate.FindStringSubmatch(out)
	if found == nil || strings.Contains(out, "Socket errors") || strings.Contains(out, "Non-2xx") {
		return 0, fmt.Errorf("wrk: %s", out)
	}
	rate, err := strconv.ParseFloat(found[1], 64)
	if err != nil || rate == 0 {
		return 0, fmt.Errorf("wrk: %s", out)
	}
	return 1e9 / rate, nil
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

// driveConns has one request under way on each connection, on a goroutine each. It checks how each answer begins and how long it is. The
// first fifth of the time is not counted.
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

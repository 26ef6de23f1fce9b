package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// The clients of the servers. They are in a process of their own, on the same machine, so their processor time counts against both sides.

// driveArg makes a process a client: of a kind of server, at an address, with so many connections or requests a second, for so long.
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
			out, err := exec.Command(wrk(), "-t1", fmt.Sprintf("-c%d", conns), fmt.Sprintf("-d%ds", seconds), "http://"+addr.String()+"/").CombinedOutput()
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
	addr, rate, d := args[1], must(strconv.ParseFloat(args[2], 64)), must(time.ParseDuration(args[3]))
	conns := int(rate)
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
	return driveFib(addr, rate, d)
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

// fibReport is the output of the client of the Fibonacci servers: answers a second, and the time of the 90th percentile in seconds.
type fibReport struct{ PerSecond, P90 float64 }

// driveFib sends rate requests a second for a fifth of d, which does not count, and then for d. Every costly-th is for costlyN. They are
// sent on 64 connections when they are due, even if the server does not keep up, but one at a time on each connection. If the answer
// before it is late, the time of a request counts from the moment when it was due. So a slow server cannot hide by being asked less.
// Otherwise it counts from the moment when it was sent, which may be a millisecond late because of the client's timers. A request that is
// due and not answered at the end counts as answered then, which is too early, for the times, and not at all for the throughput.
func driveFib(addr string, rate float64, d time.Duration) fibReport {
	conns := make([]net.Conn, fibConns)
	for i := range conns {
		conns[i] = must(net.Dial("tcp", addr))
		defer conns[i].Close()
	}
	apart := time.Duration(float64(time.Second) / rate)
	first := time.Now().Add(10 * time.Millisecond)
	begin := first.Add(d / 5)
	end := begin.Add(d)
	due := func(k int) time.Time { return first.Add(time.Duration(k) * apart) }
	var mu sync.Mutex
	var took []time.Duration
	answered := 0
	var all errgroup.Group
	for i, c := range conns {
		all.Go(func() error {
			k, mine, inTime, err := i, []time.Duration(nil), 0, error(nil)
			_ = c.SetDeadline(end)
			in := bufio.NewReader(c)
			for ; err == nil && due(k).Before(end); k += len(conns) {
				from := due(k)
				if wait := time.Until(from); wait > 0 {
					time.Sleep(wait)
					from = time.Now()
				}
				n := cheapN
				if k%costly == costly-1 {
					n = costlyN
				}
				if err = askFib(c, in, n); err != nil {
					break
				}
				if now := time.Now(); now.After(begin) && now.Before(end) {
					inTime++
				}
				if !due(k).Before(begin) {
					mine = append(mine, time.Since(from))
				}
			}
			for ; due(k).Before(end); k += len(conns) { // not answered
				if !due(k).Before(begin) {
					mine = append(mine, end.Sub(due(k)))
				}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil
			}
			mu.Lock()
			defer mu.Unlock()
			took, answered = append(took, mine...), answered+inTime
			return err
		})
	}
	ok(all.Wait())
	p90 := time.Duration(0)
	if len(took) > 0 {
		slices.Sort(took)
		p90 = took[(len(took)-1)*90/100]
	}
	return fibReport{float64(answered) / d.Seconds(), p90.Seconds()}
}

func askFib(c net.Conn, in *bufio.Reader, n int) error {
	if _, err := fmt.Fprintf(c, "GET /fib/%d HTTP/1.1\r\nHost: localhost\r\n\r\n", n); err != nil {
		return err
	}
	status, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") {
		return fmt.Errorf("the server said %q", status)
	}
	size := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
		if v, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if size, err = strconv.Atoi(strings.TrimSpace(v)); err != nil {
				return err
			}
		}
	}
	body, err := in.Peek(size)
	if err != nil {
		return err
	}
	if want := map[int]string{cheapN: "1\n", costlyN: "2178309\n"}[n]; string(body) != want {
		return fmt.Errorf("fib(%d) is %q", n, body)
	}
	_, err = in.Discard(size)
	return err
}

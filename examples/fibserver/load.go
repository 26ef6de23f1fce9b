package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The load consists of cheap requests on many connections and costly requests on a few connections.
const (
	cheapConns  = 16
	costlyConns = 2
	cheapN      = 1
	costlyN     = 35
	equalRate   = 1000 // cheap requests per second
)

// A report holds the measurements of one server under one load.
type report struct {
	Cheap, Costly latencies
}

type latencies struct {
	PerSecond     float64
	P50, P90, P99 time.Duration
}

func (l latencies) String() string {
	return fmt.Sprintf("%9.0f req/s  p50 %9s  p90 %9s  p99 %9s",
		l.PerSecond, l.P50.Round(time.Microsecond), l.P90.Round(time.Microsecond), l.P99.Round(time.Microsecond))
}

// compare measures three servers, each for the duration load: the composed server, a server that computes on its event loop, and net/http.
// The client runs in another process. The loads are as many requests as are answered, and then equalRate, or only rate if it is not 0.
func compare(ctx context.Context, load time.Duration, rate, loops, workers int, lim limits) error {
	servers := []struct {
		name  string
		start func() (addr net.Addr, shutdown func(time.Duration) error, err error)
	}{
		{"composed: connections on an event loop, fib on a work-stealing pool", func() (net.Addr, func(time.Duration) error, error) {
			return running(startComposed("127.0.0.1:0", loops, workers, lim))
		}},
		{"inline: the event loop also computes", func() (net.Addr, func(time.Duration) error, error) {
			return running(startLoop("127.0.0.1:0", loops, func(_ context.Context, n int) (int, error) { return sequential(n), nil }))
		}},
		{"net/http: a goroutine for each connection", startNetHTTP},
	}
	rates := []int{0, equalRate}
	if rate > 0 {
		rates = []int{rate}
	}
	for _, rate := range rates {
		if rate == 0 {
			fmt.Printf("Closed loop: %d connections request /fib/%d, and %d request /fib/%d, each again as soon as it is\n"+
				"answered. Compare the first lines. A server that answers more cheap requests has less processor time for\n"+
				"the costly ones, so the second lines cannot be compared.\n", cheapConns, cheapN, costlyConns, costlyN)
		} else {
			fmt.Printf("\nOpen loop: %d requests a second for /fib/%d, answered or not, and %d connections that request\n"+
				"/fib/%d as before. Both lines can be compared. A latency counts from the time at which the request was due.\n", rate, cheapN, costlyConns, costlyN)
		}
		for _, server := range servers {
			addr, shutdown, err := server.start()
			if err != nil {
				return err
			}
			r, err := driveElsewhere(ctx, addr, load, rate)
			if err := errors.Join(err, shutdown(time.Second)); err != nil {
				return fmt.Errorf("%s: %w", server.name, err)
			}
			fmt.Printf("\n%s\n  /fib/%-2d %v\n  /fib/%-2d %v\n", server.name, cheapN, r.Cheap, costlyN, r.Costly)
		}
	}
	return nil
}

func running(c *composed, err error) (net.Addr, func(time.Duration) error, error) {
	if err != nil {
		return nil, nil, err
	}
	return c.Addr(), c.Shutdown, nil
}

func startNetHTTP() (net.Addr, func(time.Duration) error, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fib/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err != nil || n < 0 || n > maxN {
			http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, sequential(n))
	})
	srv := &http.Server{Handler: mux}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	return ln.Addr(), func(grace time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		err := srv.Shutdown(ctx)
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// driveElsewhere runs drive in another process, so that the client does not share a Go scheduler with the server.
func driveElsewhere(ctx context.Context, addr net.Addr, load time.Duration, rate int) (r report, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, self, "-drive", addr.String(), "-load", load.String(), "-rate", strconv.Itoa(rate))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(out, &r)
}

func driveAndReport(addr string, load time.Duration, rate int) error {
	r, err := drive(addr, load, rate)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// drive sends requests for the duration load, and checks every answer. The rate is the number of cheap requests per second on all
// connections together. If rate is 0, each connection sends a request when the previous answer arrives.
func drive(addr string, load time.Duration, rate int) (r report, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var cheap, costly []time.Duration
	start := time.Now()
	client := func(n int, begin time.Time, every time.Duration, into *[]time.Duration) {
		took, e := askUntil(addr, n, begin, every, start.Add(load))
		mu.Lock()
		defer mu.Unlock()
		*into = append(*into, took...)
		err = errors.Join(err, e)
	}
	var every time.Duration
	if rate > 0 {
		every = time.Second * cheapConns / time.Duration(rate)
	}
	for i := range time.Duration(cheapConns) {
		all.Go(func() { client(cheapN, start.Add(every*i/cheapConns), every, &cheap) })
	}
	for range costlyConns {
		all.Go(func() { client(costlyN, start, 0, &costly) })
	}
	all.Wait()
	elapsed := time.Since(start)
	return report{summary(cheap, elapsed), summary(costly, elapsed)}, err
}

// askUntil sends requests on one connection until the time end, and returns their latencies. If the interval every is 0, each request is
// sent when the previous answer arrives. At least one request is sent.
func askUntil(addr string, n int, begin time.Time, every time.Duration, end time.Time) (took []time.Duration, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	request := []byte(fmt.Sprintf("GET /fib/%d HTTP/1.1\r\nHost: %s\r\n\r\n", n, addr))
	want := strconv.Itoa(fibonacci(n))
	in := bufio.NewReader(c)
	due := begin
	for len(took) == 0 || due.Before(end) && time.Now().Before(end) {
		time.Sleep(time.Until(due))
		if every == 0 {
			due = time.Now()
		}
		if _, err := c.Write(request); err != nil {
			return took, err
		}
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			return took, err
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return took, err
		}
		if r.StatusCode != http.StatusOK || strings.TrimSpace(string(body)) != want {
			return took, fmt.Errorf("/fib/%d: %s %q", n, r.Status, body)
		}
		took = append(took, time.Since(due))
		due = due.Add(every)
	}
	return took, nil
}

// fibonacci computes the nth Fibonacci number in a different way from the servers, and at once.
func fibonacci(n int) int {
	a, b := 0, 1
	for range n {
		a, b = b, a+b
	}
	return a
}

func summary(took []time.Duration, elapsed time.Duration) latencies {
	if len(took) == 0 {
		return latencies{}
	}
	slices.Sort(took)
	at := func(p int) time.Duration { return took[(len(took)-1)*p/100] }
	return latencies{float64(len(took)) / elapsed.Seconds(), at(50), at(90), at(99)}
}

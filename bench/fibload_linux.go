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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
)

// These are the figures 6.1 and 6.2 of the thesis, the Fibonacci server. Every costly-th request is for fib(32), some ten milliseconds, as
// long as the Go scheduler lets a goroutine have a processor. The others are for fib(1). Requests are sent on 64 connections when they are
// due, even if the server does not keep up, but one at a time on each connection. If the answer before it is late, the time of a
// request counts from the moment when it was due. So a slow server cannot hide by being asked less. Otherwise it counts from the moment when
// it was sent, which may be a millisecond late because of the client's timers. A request that is due and not answered at the end counts as
// answered then, which is too early, for the times, and not at all for the throughput.
//
// Each server is a process of its own, and so is the client, which has one processor at most.
const (
	costly   = 100
	cheapN   = 1
	costlyN  = 32
	fibConns = 64
)

// A fibServer has a number of processors beyond those of its workers. The composed server also exists with one more, for its reactor.
// Otherwise the workers hold all of them, and a reactor that a descriptor wakes waits until one of them is preempted.
type fibServer struct {
	name   string
	more   int
	series string
}

var fibServers = []fibServer{
	{"composed", 0, "event loop + work-stealing pool"},
	{"composed", 1, "event loop + work-stealing pool, GOMAXPROCS one more"},
	{"inline", 0, "event loop that computes inline"},
	{"net/http", 0, "net/http, a goroutine for each connection"},
	{"goroutines", 0, "the handler of the loops on net, goroutines"},
}

var fibFigureNames = []figure{{name: "throughput", label: "answers per second"}, {name: "p90", label: "90th percentile, ms", log: true}}

var fibSeries = func() (all []string) {
	for _, s := range fibServers {
		all = append(all, s.series)
	}
	return all
}()

const fibAbout = "One in 100 requests is for fib(32), the others for fib(1), sent when they are due on 64 connections. Client and server are processes of their own on this machine. "

var fibLoad = curve{
	id: "fib-load", title: "Figure 6.1: a Fibonacci server, against offered load",
	about:   fibAbout + "Workers and GOMAXPROCS are the number of processors, GOMAXPROCS one more where it says so; the composed server has one reactor.",
	x:       axis{label: "requests per second, offered", log: true},
	figures: fibFigureNames, series: fibSeries,
	rounds: 3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{500}
		}
		return []float64{1000, 2000, 4000, 8000, 12_000}
	},
	open: func(m mode, x float64) (*station, error) {
		return fibStation(m, runtime.NumCPU(), x)
	},
}

var fibWorkers = curve{
	id: "fib-workers", title: "Figure 6.2: a Fibonacci server, against workers",
	about: fibAbout + "4000 requests per second are offered. Workers are GOMAXPROCS of the server's process, which is one more where it says so, and those of the pool of the composed server, " +
		"which has one reactor, or the reactors of the one that computes inline.",
	x:       axis{label: "workers"},
	figures: fibFigureNames, series: fibSeries,
	rounds: 3, cold: true,
	points: func(m mode) []float64 {
		if m.Tiny {
			return []float64{2}
		}
		all := []float64{1, 2}
		for n := 4; n <= 2*runtime.NumCPU(); n *= 2 {
			all = append(all, float64(n))
		}
		return all
	},
	open: func(m mode, x float64) (*station, error) {
		s, err := fibStation(m, int(x), float64(m.of(4000, 200)))
		if err == nil && int(x) > runtime.NumCPU() {
			s.notes = append(s.notes, fmt.Sprintf("This machine has %d processors.", runtime.NumCPU()))
		}
		return s, err
	},
}

func fibStation(m mode, workers int, rate float64) (*station, error) {
	s := &station{}
	var stops []func() error
	s.close = func() {
		for _, stop := range stops {
			must(0, stop())
		}
	}
	for _, server := range fibServers {
		addr, stop, err := startFibServer(server.name, workers, workers+server.more)
		if err != nil {
			s.close()
			return nil, err
		}
		stops = append(stops, stop)
		s.sides = append(s.sides, func() ([]float64, error) {
			r, err := driveFibElsewhere(addr, rate, time.Duration(m.of(800, 50))*time.Millisecond)
			return []float64{r.PerSecond, r.P90 * 1e3}, err
		})
	}
	return s, nil
}

// startFibServer runs the server in a process that ends with its standard input.
func startFibServer(name string, workers, procs int) (addr string, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(self, serveArg, name, strconv.Itoa(workers))
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs))
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(in.Close(), cmd.Wait()) }
	addr, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("the server %s: %w", name, err), stop())
	}
	return strings.TrimSpace(addr), stop, nil
}

// serveFib is the process of a server.
func serveFib(args []string) error {
	if len(args) != 2 {
		return errors.New("-serve is what the curves of the server start it with")
	}
	workers, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var addr net.Addr
	switch args[0] {
	case "composed":
		p := workstealing.New(workstealing.Options{Workers: workers})
		pool = p
		addr, err = fibOnLoop(1, func(ctx context.Context, n int) (int, error) {
			answer := promise.New[int]()
			if err := p.Go(func() { _ = answer.Resolve(fibCut(ctx, n)) }); err != nil {
				return 0, err
			}
			return answer.Await(ctx)
		})
	case "inline":
		addr, err = fibOnLoop(workers, func(_ context.Context, n int) (int, error) { return fibSerial(n), nil })
	case "net/http":
		var ln net.Listener
		if ln, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
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
	case "goroutines":
		addr, _, err = stdServer(func(c net.Conn) {
			serveFibConn(context.Background(), c, func(_ context.Context, n int) (int, error) { return fibSerial(n), nil })
		})
	default:
		err = fmt.Errorf("there is no server %q", args[0])
	}
	if err != nil {
		return err
	}
	fmt.Println(addr)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func fibOnLoop(loops int, compute func(context.Context, int) (int, error)) (net.Addr, error) {
	loop, err := eventloop.New(eventloop.Options{Loops: loops})
	if err != nil {
		return nil, err
	}
	ln, err := loop.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		_ = ln.Serve(context.Background(), func(ctx context.Context, c net.Conn) { serveFibConn(ctx, c, compute) })
	}()
	return ln.Addr(), nil
}

// serveFibConn is the handler of all servers but that of net/http, which watches for clients that leave, and has timeouts, and
// more. examples/fibserver has them too. So the comparison with net/http flatters the other servers here.
func serveFibConn(ctx context.Context, c net.Conn, compute func(context.Context, int) (int, error)) {
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

func driveFibElsewhere(addr string, rate float64, d time.Duration) (r fibReport, err error) {
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	cmd := exec.Command(self, driveArg, "fib", addr, fmt.Sprint(rate), d.String())
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return r, fmt.Errorf("the client: %w", err)
	}
	return r, json.Unmarshal(out, &r)
}

// driveFib is the process of the client: rate requests a second for a fifth of d and then for d.
func driveFib(addr string, rate float64, d time.Duration) (r fibReport, err error) {
	conns := make([]net.Conn, fibConns)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			return r, err
		}
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
	var failed error
	var all sync.WaitGroup
	for i, c := range conns {
		all.Go(func() {
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
			took, answered, failed = append(took, mine...), answered+inTime, errors.Join(failed, err)
		})
	}
	all.Wait()
	return fibReport{float64(answered) / d.Seconds(), percentile(took, 90).Seconds()}, failed
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

// percentile is 0 for none.
func percentile(v []time.Duration, p int) time.Duration {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	return v[(len(v)-1)*p/100]
}

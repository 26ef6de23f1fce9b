package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// driveArg makes a process the client of the rows that need one.
const driveArg = "-drive"

// serveArg makes one a Fibonacci server.
const serveArg = "-serve"

const (
	echoed      = 64 // bytes there and back
	httpRequest = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
	response    = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"
)

// fibReport is the output of the client of the Fibonacci servers. Times are in seconds.
type fibReport struct{ PerSecond, P90 float64 }

// wrk is where wrk is installed, empty where it is not.
var wrk = sync.OnceValue(func() string {
	path, _ := exec.LookPath("wrk")
	return path
})

// driveElsewhere has another process drive the server at addr for d, and returns the nanoseconds per operation. For
// HTTP that process is wrk where there is one, for whole seconds.
func driveElsewhere(what, addr string, conns int, d time.Duration) (float64, error) {
	if what == "http" && wrk() != "" {
		seconds := int(max(1, (d+time.Second/2)/time.Second))
		out, err := exec.Command(wrk(), "-t1", "-c"+strconv.Itoa(conns), fmt.Sprintf("-d%ds", seconds), "http://"+addr+"/").CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("%w: %s", err, out)
		}
		return parseWrk(string(out))
	}
	out, err := itself(driveArg, what, addr, strconv.Itoa(conns), d.String())
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
}

// itself runs this program in another process.
func itself(args ...string) (out []byte, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	if args[0] == bytesArg { // otherwise the runtime guesses how large a first stack has to be, from the few that there are at first
		cmd.Env = append(os.Environ(), "GODEBUG=adaptivestackstart=0")
	}
	if out, err = cmd.Output(); err != nil {
		err = fmt.Errorf("the process of %s: %w", strings.Join(args, " "), err)
	}
	return out, err
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

// drive takes the kind of server, the address, the number of connections and the duration, and prints the nanoseconds per operation. For
// the Fibonacci servers it takes the rate instead of a number, and prints a fibReport.
func drive(args []string) error {
	if len(args) != 4 {
		return errors.New("-drive is what the rows of servers start their client with")
	}
	d, err := time.ParseDuration(args[3])
	if err != nil {
		return err
	}
	if args[0] == "fib" {
		rate, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return err
		}
		r, err := driveFib(args[1], rate, d)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r)
	}
	conns, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	var each float64
	switch args[0] {
	case "http":
		each, err = driveTCP(args[1], conns, d, httpRequest, "HTTP/1.1 200 ", len(response))
	case "echo":
		each, err = driveTCP(args[1], conns, d, strings.Repeat("e", echoed), "e", echoed)
	case "tls":
		each, err = driveTLS(args[1], conns, d)
	default:
		err = fmt.Errorf("nothing drives %q", args[0])
	}
	if err == nil {
		fmt.Println(each)
	}
	return err
}

func driveTLS(addr string, conns int, d time.Duration) (float64, error) {
	open := make([]*tls.Conn, conns)
	for i := range open {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return 0, err
		}
		open[i] = c
	}
	var trips atomic.Int64
	var stop atomic.Bool
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for _, c := range open {
		all.Go(func() {
			buf := make([]byte, 64)
			for !stop.Load() {
				_, err := c.Write(buf)
				if err == nil {
					_, err = io.ReadFull(c, buf)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				trips.Add(1)
			}
		})
	}
	time.Sleep(d / 5)
	start, before := time.Now(), trips.Load()
	time.Sleep(d)
	n, took := trips.Load()-before, time.Since(start)
	stop.Store(true)
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	if n == 0 {
		return 0, errors.New("no answers")
	}
	return float64(took) / float64(n), nil
}

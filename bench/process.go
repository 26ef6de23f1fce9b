package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Some rows and curves run this program in a second process: as a client, as a file server, or to measure memory.

// helpers maps the first argument of such a process to the function that it runs. The process prints the function's result as JSON.
var helpers = map[string]func(args []string) any{driveArg: driveHere, bytesArg: bytesHere, fileServerArg: fileServerHere}

// isHelper reports whether this process was started as a helper. If so, it does the helper's work before it returns.
func isHelper() bool {
	if len(os.Args) < 2 || helpers[os.Args[1]] == nil {
		return false
	}
	ok(json.NewEncoder(os.Stdout).Encode(helpers[os.Args[1]](os.Args[2:])))
	return true
}

// itself runs this program in another process, and returns the value that the process prints.
func itself[T any](env []string, args ...string) (v T) {
	cmd := exec.Command(must(os.Executable()), args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("the process of %s: %w", strings.Join(args, " "), err)
	}
	ok(err)
	ok(json.Unmarshal(out, &v))
	return v
}

// built builds the program of an example, and returns its path.
func built(example string) string {
	program := filepath.Join(scratch(), example)
	build := exec.Command("go", "build", "-C", filepath.FromSlash("../examples/"+example), "-o", program, ".")
	build.Stderr = os.Stderr
	ok(build.Run())
	return program
}

// fileServerArg is the argument that starts this program as a net/http file server.
const fileServerArg = "-fileserver"

func fileServerHere(args []string) any {
	return http.ListenAndServe(args[1], http.FileServer(http.Dir(args[0])))
}

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
func (b *bench) driven(what string, addr net.Addr, conns int) side {
	return func() float64 {
		return itself[float64](nil, driveArg, what, addr.String(), strconv.Itoa(conns), min(10*b.Round, time.Second).String())
	}
}

func driveHere(args []string) any {
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

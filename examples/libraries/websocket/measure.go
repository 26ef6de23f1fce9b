package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/braidgo/braid/adapters/eventloop"
)

// servers are stock http.Servers that echo.
var servers = []struct {
	name    string
	handler func() (http.Handler, error)
}{
	{"coder/websocket, in its handler", func() (http.Handler, error) { return http.HandlerFunc(coderEcho), nil }},
	{"gobwas/ws, in its handler", func() (http.Handler, error) { return gobwasEcho(func(f func()) { f() }), nil }},
	{"gobwas/ws, on a goroutine", func() (http.Handler, error) { return gobwasEcho(func(f func()) { go f() }), nil }},
	{"gobwas/ws, parked", func() (http.Handler, error) {
		loop, err := eventloop.New(eventloop.Options{})
		if err != nil {
			return nil, err
		}
		return newHub(loop, echo), nil
	}},
}

func coderEcho(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for err == nil {
		var t websocket.MessageType
		var b []byte
		if t, b, err = c.Read(context.Background()); err == nil {
			err = c.Write(context.Background(), t, b)
		}
	}
}

// gobwasEcho returns a handler that serves a connection by a function that start calls.
func gobwasEcho(start func(f func())) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			return
		}
		start(func() {
			defer c.Close()
			for {
				b, op, err := wsutil.ReadClientData(c)
				if err != nil || send(c, op, b) != nil {
					return
				}
			}
		})
	})
}

// serveMeasured starts a server and prints its address. For each line of its input it prints the bytes that the server has taken since.
func serveMeasured(i int) error {
	handler, err := servers[i].handler()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(ln, handler) }()
	before := live()
	fmt.Println(ln.Addr())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(live() - before)
	}
	return nil
}

func live() (sum uint64) {
	runtime.GC()
	runtime.GC()
	for _, class := range []string{"heap/objects", "heap/stacks", "metadata/other", "other"} {
		s := []metrics.Sample{{Name: "/memory/classes/" + class + ":bytes"}}
		metrics.Read(s)
		sum += s[0].Value.Uint64()
	}
	return sum
}

// measure runs a server in another process, and returns the bytes for each of n connections.
func measure(server, n int) (each float64, err error) {
	cmd := exec.Command(os.Args[0], "-serve", strconv.Itoa(server))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = in.Close()
		err = errors.Join(err, cmd.Wait())
	}()
	var addr string
	if _, err := fmt.Fscan(out, &addr); err != nil {
		return 0, err
	}
	conns := make([]net.Conn, n)
	for i := range conns {
		if conns[i], err = upgraded(addr); err != nil {
			return 0, err
		}
		defer conns[i].Close()
	}
	for range 2 {
		for _, c := range conns {
			if err := exchange(c); err != nil {
				return 0, err
			}
		}
	}
	time.Sleep(time.Second) // the goroutines of the handlers end
	fmt.Fprintln(in)
	bytes := 0.0
	_, err = fmt.Fscan(out, &bytes)
	return bytes / float64(n), err
}

// upgraded opens a WebSocket connection.
func upgraded(addr string) (net.Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if _, _, err := (ws.Dialer{}).Upgrade(c, &url.URL{Scheme: "ws", Host: addr, Path: "/"}); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// exchange sends a message, and checks the answer.
func exchange(c net.Conn) error {
	if err := wsutil.WriteClientText(c, []byte("hello")); err != nil {
		return err
	}
	b, err := wsutil.ReadServerText(c)
	if err == nil && string(b) != "hello" {
		err = fmt.Errorf("the answer is %q", b)
	}
	return err
}

func measureAll(n int) error {
	for i, s := range servers {
		each, err := measure(i, n)
		if err != nil {
			return err
		}
		fmt.Printf("%-34s%7.0f bytes for each connection that waits\n", s.name, each)
	}
	return nil
}

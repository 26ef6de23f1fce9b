package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/weigh"
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
	weigh.Serve(ln.Addr().String())
	return nil
}

// measure runs a server in another process, and returns the bytes for each of n connections.
func measure(server, n int) (each float64, err error) {
	return weigh.Each(n, weigh.Client{Dial: upgraded, Use: exchange, Pause: time.Second}, "-serve", strconv.Itoa(server))
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
		err = fmt.Errorf("got %q as the answer", b)
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

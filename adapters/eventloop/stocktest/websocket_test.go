package stocktest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
)

var websocketRows = []row{
	{name: "gorilla/websocket, clients", run: func(ctx context.Context, e *env) error {
		server := httptest.NewServer(http.HandlerFunc(gorillaEcho))
		defer server.Close()
		return gorillaClients(ctx, e, e, server.Listener.Addr().String())
	}},
	{name: "gorilla/websocket, a server after ReadRequest", run: func(ctx context.Context, e *env) error {
		address, err := e.serve(upgrading(gorillaEcho))
		if err != nil {
			return err
		}
		return gorillaClients(ctx, e, e.beside(), address)
	}},
	{name: "coder/websocket, clients", held: deadlock, run: func(ctx context.Context, e *env) error {
		server := httptest.NewServer(http.HandlerFunc(coderEcho))
		defer server.Close()
		return e.tasks(20, 1, func(int) error {
			client := &http.Client{Transport: &http.Transport{DialContext: e.dial}}
			c, _, err := coder.Dial(ctx, server.URL, &coder.DialOptions{HTTPClient: client})
			if err != nil {
				return err
			}
			for range 20 {
				if err := c.Write(ctx, coder.MessageText, []byte(greeting)); err != nil {
					return err
				}
				_, b, err := c.Read(ctx)
				if err := is(b, err); err != nil {
					return err
				}
			}
			return c.Close(coder.StatusNormalClosure, "")
		})
	}},
	{name: "coder/websocket, a server after ReadRequest", run: func(ctx context.Context, e *env) error {
		address, err := e.serve(upgrading(coderEcho))
		if err != nil {
			return err
		}
		return gorillaClients(ctx, e, e.beside(), address)
	}},
}

func gorillaEcho(w http.ResponseWriter, r *http.Request) {
	c, err := new(gorilla.Upgrader).Upgrade(w, r, nil)
	for err == nil {
		var b []byte
		if _, b, err = c.ReadMessage(); err == nil {
			err = c.WriteMessage(gorilla.TextMessage, b)
		}
	}
}

func coderEcho(w http.ResponseWriter, r *http.Request) {
	c, err := coder.Accept(w, r, nil)
	for err == nil {
		var b []byte
		if _, b, err = c.Read(context.Background()); err == nil {
			err = c.Write(context.Background(), coder.MessageText, b)
		}
	}
}

// gorillaClients runs clients in tasks of on. Their time counts as that of e.
func gorillaClients(ctx context.Context, e, on *env, address string) error {
	err := on.tasks(20, 1, func(int) error {
		c, _, err := (&gorilla.Dialer{NetDialContext: on.dial}).DialContext(ctx, "ws://"+address, nil)
		if err != nil {
			return err
		}
		defer c.Close()
		for range 20 {
			if err := c.WriteMessage(gorilla.TextMessage, []byte(greeting)); err != nil {
				return err
			}
			_, b, err := c.ReadMessage()
			if err := is(b, err); err != nil {
				return err
			}
		}
		return nil
	})
	e.took = on.took
	return err
}

// upgrading reads a request, and passes it to a handler that takes over the connection.
func upgrading(handler http.HandlerFunc) func(c net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		if r, err := http.ReadRequest(in); err == nil {
			handler(&taken{c, bufio.NewReadWriter(in, bufio.NewWriter(c)), http.Header{}}, r)
		}
	}
}

// taken is the ResponseWriter of a connection that its handler takes over.
type taken struct {
	c      net.Conn
	rw     *bufio.ReadWriter
	header http.Header
}

func (t *taken) Header() http.Header { return t.header }
func (t *taken) Write(p []byte) (int, error) {
	return 0, errors.New("the handler must take over the connection")
}
func (t *taken) Hijack() (net.Conn, *bufio.ReadWriter, error) { return t.c, t.rw, nil }
func (t *taken) WriteHeader(status int) {
	_ = (&http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: t.header}).Write(t.c)
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// A script is a connection whose client has sent everything, including the end, before the server reads.
type script struct {
	mu     sync.Mutex
	in     *bytes.Reader
	out    bytes.Buffer
	closed chan struct{}
	once   sync.Once
}

func newScript(in []byte) *script {
	return &script{in: bytes.NewReader(in), closed: make(chan struct{})}
}

func (c *script) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in.Read(b)
}

func (c *script) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(b)
}

func (c *script) Close() error                     { c.once.Do(func() { close(c.closed) }); return nil }
func (c *script) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }

// one is a listener for a single connection.
type one struct {
	c      chan net.Conn
	closed chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	select {
	case c := <-l.c:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *one) Close() error   { close(l.closed); return nil }
func (l *one) Addr() net.Addr { return &net.TCPAddr{} }

// standard returns the status of the first response of net/http to the same bytes, and whether it comes from our handler.
func standard(t *testing.T, in []byte) (status int, ours bool) {
	c, l := newScript(in), &one{make(chan net.Conn, 1), make(chan struct{})}
	l.c <- c
	handled := 0
	var mu sync.Mutex
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, status := parse(r)
		mu.Lock()
		handled++
		mu.Unlock()
		w.WriteHeader(status)
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	<-c.closed
	_ = s.Close()
	<-ended
	c.mu.Lock()
	defer c.mu.Unlock()
	mu.Lock()
	defer mu.Unlock()
	if handled == 0 {
		return 0, false
	}
	r, err := http.ReadResponse(bufio.NewReader(&c.out), nil)
	if err != nil {
		t.Fatalf("net/http has answered %q", c.out.Bytes())
	}
	return r.StatusCode, true
}

// Whatever a client sends, it gets complete responses or the end, and the connection ends. If net/http accepts the bytes as a
// request, ours has the same status.
func FuzzRequests(f *testing.F) {
	for _, s := range []string{
		get("/fib/10"), get("/fib/10") + get("/fib/30"), get("/fib/-1"), get("/"), get("/fib/+1"), get("//fib/1"), get("/fib/%31"),
		"GET /fib/1 HTTP/1.0\r\n\r\n", "GET /fib/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get("/fib/2"),
		"HEAD /fib/5 HTTP/1.1\r\nHost: x\r\n\r\n" + get("/fib/6"),
		"POST /fib/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + get("/fib/2"),
		"POST /fib/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + get("/fib/2"),
		"POST /fib/1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET /fib/1 HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
		"GET /fib/1 HTTP/1.1\r\n\r\n", "GET /fib/1 HTTP/2.0\r\nHost: x\r\n\r\n", "GET /fib/1\r\n", "\r\n\r\n", "GET http://x/fib/3 HTTP/1.1\r\nHost: y\r\n\r\n",
		"GET /fib/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + get("/fib/2"), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /fib/1 HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", maxHeader) + "\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		defer schedtest.Within(t, schedtest.Deadline/6)()
		c := newScript(in)
		s := newHTTPServer(func(_ context.Context, n int) (int, error) { return n, nil })
		if s.serveConn(s.ctx, c) == nil {
			t.Fatal("the connection is left open")
		}
		s.cancel()
		answers, requests := bufio.NewReader(bytes.NewReader(c.out.Bytes())), bufio.NewReader(bytes.NewReader(in))
		var first int
		for n := 0; ; n++ {
			if _, err := answers.Peek(1); err == io.EOF {
				break
			}
			asked, err := http.ReadRequest(requests)
			if err != nil {
				asked = nil
			}
			r, err := http.ReadResponse(answers, asked)
			if err != nil {
				t.Fatalf("answer %d of %q: %v", n, c.out.Bytes(), err)
			}
			if _, err = io.Copy(io.Discard, r.Body); err != nil {
				t.Fatalf("answer %d of %q: %v", n, c.out.Bytes(), err)
			}
			if n == 0 {
				first = r.StatusCode
			}
			if asked != nil {
				_, _ = io.Copy(io.Discard, asked.Body)
			}
			if r.Close {
				if _, err := answers.Peek(1); err != io.EOF {
					t.Fatalf("there is data after the last response: %q", c.out.Bytes())
				}
			}
		}
		if len(in) > maxHeader/2 {
			return // exceeds a limit
		}
		if status, ours := standard(t, in); ours && status != first {
			t.Errorf("status %d, where net/http has %d", first, status)
		}
	})
}

package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/stage/view"
)

// The limits of a connection.
const (
	maxHeader    = 8 << 10 // bytes of a request before its body
	maxBody      = 4 << 10 // bytes of a body, which no file wants
	idleTimeout  = time.Minute
	readTimeout  = 10 * time.Second       // runs from the first byte of a request to its last
	writeTimeout = 10 * time.Second       // limits a client that takes nothing of an answer
	lastRequest  = 100 * time.Millisecond // waits for a request that is on its way when the server ends
)

// A front has the connections.
type front struct {
	http   fasthttp.Server
	write  time.Duration   // the limit of a Write
	ctx    context.Context // the context of all requests
	cancel context.CancelCauseFunc

	mu       sync.Mutex // must not be held during I/O
	draining bool
	waits    map[net.Conn]bool // whether each connection waits for a request
}

func newFront(s *site) *front {
	f := &front{waits: map[net.Conn]bool{}, write: writeTimeout}
	f.ctx, f.cancel = cancel.New(context.Background())
	stages := fasthttpadaptor.NewFastHTTPHandler(view.Handler(s.cache, s.disk, s.compress))
	f.http = fasthttp.Server{
		Handler: func(c *fasthttp.RequestCtx) {
			if string(c.Path()) == "/-/stages" {
				stages(c)
			} else {
				s.answer(f.ctx, c)
			}
			if f.isDraining() {
				c.SetConnectionClose()
			}
		},
		ConnState:             f.changed,
		Name:                  "braid",
		Logger:                silent{},
		ReadBufferSize:        maxHeader,
		WriteBufferSize:       32 << 10, // a page of 16 KB and its header are one write
		MaxRequestBodySize:    maxBody,
		ReduceMemoryUsage:     true,    // otherwise a connection that waits for the disk keeps two buffers
		Concurrency:           1 << 30, // Serve and the stages have the limits
		IdleTimeout:           idleTimeout,
		ReadTimeout:           readTimeout,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
	}
	return f
}

// serve answers the requests of a connection, one after the other. It is a task: while it waits, for the client or for a stage, the loop goes on.
func (f *front) serve(_ context.Context, c net.Conn) {
	own := &conn{c, f}
	f.changed(own, fasthttp.StateNew)
	defer f.changed(own, fasthttp.StateClosed)
	_ = f.http.ServeConn(own) // an error concerns only the client
}

// changed keeps waits up to date.
func (f *front) changed(c net.Conn, state fasthttp.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if state == fasthttp.StateClosed {
		delete(f.waits, c)
	} else {
		f.waits[c] = state != fasthttp.StateActive
	}
}

// drain ends the connections that wait for a request, but not at once: a request may be on its way. Busy connections end after their answers.
func (f *front) drain() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.draining = true
	for c, waits := range f.waits {
		if waits {
			_ = c.(*conn).Conn.SetReadDeadline(time.Now().Add(lastRequest))
		}
	}
}

func (f *front) isDraining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}

// A conn is a connection that drain can end.
type conn struct {
	net.Conn
	front *front
}

// SetReadDeadline is called before each request. After drain it must not extend the deadline.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.front.mu.Lock()
	defer c.front.mu.Unlock()
	if c.front.draining && c.front.waits[c] {
		t = time.Now().Add(lastRequest)
	}
	return c.Conn.SetReadDeadline(t)
}

// Write sets a new deadline for each call, since a large file may take long.
func (c *conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.front.write))
	return c.Conn.Write(p)
}

// Close ends the sending half, and reads on for a moment. Otherwise closing with unread bytes would take the last answer back
// from the client.
func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c.Conn, 1<<20)
	}
	return c.Conn.Close()
}

type silent struct{}

func (silent) Printf(string, ...any) {}

package main

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/stage/view"
)

// The limits of a connection.
const (
	maxHeader    = 8 << 10 // bytes of a request before its body
	maxBody      = 4 << 10 // bytes of a body; a request for a file needs no body
	idleTimeout  = time.Minute
	readTimeout  = 10 * time.Second       // limits the time to read a whole request
	writeTimeout = 10 * time.Second       // limits the wait for a client that does not read
	lastRequest  = 100 * time.Millisecond // the wait for a last request during the shutdown
)

// A front serves the connections.
type front struct {
	http   fasthttp.Server
	write  time.Duration   // the time limit for a Write
	ctx    context.Context // the context of all requests
	cancel context.CancelCauseFunc

	draining atomic.Bool // set before drain goes through the connections
	mu       sync.Mutex  // must not be held during I/O
	open     map[*conn]bool
}

func newFront(s *site) *front {
	f := &front{open: map[*conn]bool{}, write: writeTimeout}
	f.ctx, f.cancel = cancel.New(context.Background())
	stages := fasthttpadaptor.NewFastHTTPHandler(view.Handler(append(stage.Stages(s.cache), s.disk, s.compress)...))
	f.http = fasthttp.Server{
		Handler: func(c *fasthttp.RequestCtx) {
			if string(c.Path()) == "/-/stages" {
				stages(c)
			} else {
				s.answer(f.ctx, c)
			}
			if f.draining.Load() {
				c.SetConnectionClose()
			}
		},
		ConnState:             func(c net.Conn, state fasthttp.ConnState) { c.(*conn).waitsFor(state != fasthttp.StateActive) },
		Name:                  "braid",
		Logger:                silent{},
		ReadBufferSize:        maxHeader,
		WriteBufferSize:       32 << 10, // fits a page of 16 KB and its header into one write
		MaxRequestBodySize:    maxBody,
		ReduceMemoryUsage:     true,    // otherwise a connection keeps two buffers while it waits for the disk
		Concurrency:           1 << 30, // practically unlimited, because Serve and the stages have limits
		IdleTimeout:           idleTimeout,
		ReadTimeout:           readTimeout,
		NoDefaultContentType:  true,
		SecureErrorLogMessage: true,
	}
	return f
}

// serve answers the requests on a connection in order. It runs as a task, so that a wait for the client or for a stage does not block the
// loop. An idle connection keeps its task, because the loop over requests is fasthttp's: parked ones are in examples/fibserver.
func (f *front) serve(_ context.Context, c net.Conn) {
	own := &conn{Conn: c, front: f, waits: true}
	f.mu.Lock()
	f.open[own] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.open, own)
		f.mu.Unlock()
	}()
	_ = f.http.ServeConn(own) // an error concerns only the client
}

// drain closes the connections that wait for a request, but only after a short time, because a request may still arrive. Busy connections
// close after their current answers.
func (f *front) drain() {
	f.draining.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.open {
		c.mu.Lock()
		if c.waits {
			_ = c.Conn.SetReadDeadline(time.Now().Add(lastRequest))
		}
		c.mu.Unlock()
	}
}

// A conn is a connection that drain can close. Its lock is its own, so that the reactors of the loop have no lock in common for each request.
type conn struct {
	net.Conn
	front *front

	mu    sync.Mutex // must not be held during I/O
	waits bool       // the connection waits for a request
}

// waitsFor is called by fasthttp before and after each request.
func (c *conn) waitsFor(request bool) {
	c.mu.Lock()
	c.waits = request
	c.mu.Unlock()
}

// SetReadDeadline is called by fasthttp before each request. After a call of drain, it must not extend the deadline.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits && c.front.draining.Load() {
		t = time.Now().Add(lastRequest)
	}
	return c.Conn.SetReadDeadline(t)
}

// Write sets a new deadline in each call, because sending a large file may take a long time.
func (c *conn) Write(p []byte) (int, error) {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(c.front.write))
	return c.Conn.Write(p)
}

// Close closes the writing half, and then reads and discards input for half a second. Otherwise closing with unread input would reset the
// connection, and the client might lose the last answer.
func (c *conn) Close() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.Conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c.Conn, 1<<20)
	}
	return c.Conn.Close()
}

type silent struct{}

func (silent) Printf(string, ...any) {}

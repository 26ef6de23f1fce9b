package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// The limits of a request.
const (
	maxHeader    = 8 << 10 // bytes of a request before its body
	maxBody      = 4 << 10 // bytes of a body, which the server discards
	maxN         = 50
	idleTimeout  = time.Minute            // limits the time between two requests
	parkAfter    = 100 * time.Millisecond // without a byte of the next request; then a connection gives its task back
	readTimeout  = 10 * time.Second       // limits the time to read a whole request
	writeTimeout = 10 * time.Second       // limits the time to write an answer
)

// A compute function computes the answer to a request. It may suspend, and returns soon after ctx ends.
type compute func(ctx context.Context, n int) (int, error)

// An httpServer serves GET /fib/N over HTTP/1.1, with one task per busy connection. It uses only net.Conn for input and output, so that it
// runs on any scheduler.
type httpServer struct {
	compute compute
	ctx     context.Context
	cancel  context.CancelFunc

	mu       sync.Mutex // must not be held during I/O
	draining bool
	idle     map[net.Conn]bool // the connections that wait for a request
}

func newHTTPServer(compute compute) *httpServer {
	s := &httpServer{compute: compute, idle: map[net.Conn]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

var errOver = errors.New("the connection is over")

var (
	readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}
)

// serveConn answers the requests on one connection in order. It returns nil if there is no byte of a next request after parkAfter, and an
// error if the connection has to be closed. A loop that cannot park calls serveConn before there is a byte. It then waits for idleTimeout.
func (s *httpServer) serveConn(ctx context.Context, c net.Conn) error {
	limit := &io.LimitedReader{R: c}
	in, out := readers.Get().(*bufio.Reader), writers.Get().(*bufio.Writer)
	defer func() {
		in.Reset(nil)
		out.Reset(nil)
		readers.Put(in)
		writers.Put(out)
	}()
	in.Reset(limit)
	out.Reset(c)
	for wait := idleTimeout; ; wait = parkAfter {
		if in.Buffered() == 0 { // sends the answers to pipelined requests together
			_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
			if err := out.Flush(); err != nil {
				return err
			}
		}
		limit.N = maxHeader
		if err := s.awaitRequest(c, in, wait); wait == parkAfter && errors.Is(err, os.ErrDeadlineExceeded) && !s.isDraining() {
			return c.SetReadDeadline(time.Time{})
		} else if err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(readTimeout))
		r, err := http.ReadRequest(in)
		if err != nil {
			status := http.StatusBadRequest
			if limit.N <= 0 {
				status = http.StatusRequestHeaderFieldsTooLarge
			} else if errors.Is(err, io.EOF) || isNetError(err) {
				return err
			}
			answer(out, nil, status, "", true)
			hangUp(c, out)
			return errOver
		}
		n, status := parse(r)
		limit.N = maxBody
		var rest error
		if status != http.StatusExpectationFailed {
			_, rest = io.CopyN(io.Discard, r.Body, maxBody)
		}
		last := r.Close || r.ProtoMajor != 1 || rest != io.EOF || s.isDraining() // EOF means that the body is complete
		_ = c.SetReadDeadline(time.Time{})
		body := ""
		if status == http.StatusOK {
			limit.N = maxHeader // limits what the watching task may read
			v, err := s.watched(ctx, c, in, n)
			switch {
			case err == nil:
				body = strconv.Itoa(v) + "\n"
			case errors.Is(err, stage.ErrOverload):
				status = http.StatusServiceUnavailable
			case errors.Is(err, context.DeadlineExceeded):
				status = http.StatusGatewayTimeout
			default:
				return err // the connection was reset, or the server is shutting down
			}
		}
		answer(out, r, status, body, last)
		if last {
			hangUp(c, out)
			return errOver
		}
	}
}

// awaitRequest waits for the first byte of a request, at most for the time wait.
func (s *httpServer) awaitRequest(c net.Conn, in *bufio.Reader, wait time.Duration) error {
	if in.Buffered() > 0 {
		return nil
	}
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return errOver
	}
	_ = c.SetReadDeadline(time.Now().Add(wait))
	s.idle[c] = true
	s.mu.Unlock()
	_, err := in.Peek(1)
	s.mu.Lock()
	delete(s.idle, c)
	s.mu.Unlock()
	return err
}

// drain closes the connections that wait for a request and are not parked. Busy connections close after their current answers.
func (s *httpServer) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for c := range s.idle {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
}

func (s *httpServer) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// watched calls s.compute, and cancels the call if the connection is reset. To notice a reset, a watching task keeps reading into the
// buffer of the reader in, where the next request may arrive. The end of the stream does not cancel the call, because a client that has
// closed only its writing half still waits for the answer. A client that has closed both halves looks the same, so compute must have a time
// limit.
func (s *httpServer) watched(ctx context.Context, c net.Conn, in *bufio.Reader, n int) (int, error) {
	if n <= cutOff {
		return sequential(n), nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := promise.New[struct{}]()
	err := suspend.Here().Go(func() {
		if _, err := in.Peek(in.Buffered() + 1); isNetError(err) && !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel()
		}
		gone.Fill(struct{}{})
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // makes the watching task stop reading
		_, _ = gone.Await(context.WithoutCancel(ctx))
		_ = c.SetReadDeadline(time.Time{})
	}()
	return s.compute(ctx, n)
}

// parse returns the number that r requests, and the HTTP status for the answer.
func parse(r *http.Request) (n, status int) {
	if r.ProtoMajor != 1 || r.ProtoAtLeast(1, 1) && r.Host == "" {
		return 0, http.StatusBadRequest
	}
	if r.Header.Get("Expect") != "" { // the client waits for a 100 response before it sends the body
		return 0, http.StatusExpectationFailed
	}
	number, ok := strings.CutPrefix(r.URL.Path, "/fib/")
	if !ok {
		return 0, http.StatusNotFound
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return 0, http.StatusMethodNotAllowed
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > maxN || number[0] == '+' {
		return 0, http.StatusBadRequest
	}
	return n, http.StatusOK
}

// answer writes a response. An empty body is replaced by the text of the status.
func answer(w *bufio.Writer, r *http.Request, status int, body string, last bool) {
	if body == "" {
		body = http.StatusText(status) + "\n"
	}
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n",
		status, http.StatusText(status), time.Now().UTC().Format(http.TimeFormat), len(body))
	switch status {
	case http.StatusMethodNotAllowed:
		_, _ = w.WriteString("Allow: GET, HEAD\r\n")
	case http.StatusServiceUnavailable:
		_, _ = w.WriteString("Retry-After: 1\r\n")
	}
	switch {
	case last:
		_, _ = w.WriteString("Connection: close\r\n")
	case r != nil && !r.ProtoAtLeast(1, 1):
		_, _ = w.WriteString("Connection: keep-alive\r\n")
	}
	_, _ = w.WriteString("\r\n")
	if r == nil || r.Method != http.MethodHead {
		_, _ = w.WriteString(body)
	}
}

// hangUp flushes the writer out, closes the writing half of c, and then reads and discards input for half a second. Otherwise closing c
// with unread input would reset the connection, and the client might lose the answer.
func hangUp(c net.Conn, out *bufio.Writer) {
	_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
	if out.Flush() != nil {
		return
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, _ = io.CopyN(io.Discard, c, 1<<20)
}

func isNetError(err error) bool {
	var op *net.OpError // a *url.Error is also a net.Error, but it means a bad request
	return errors.As(err, &op)
}

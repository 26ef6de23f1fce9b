package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"time"
)

// The limits of a connection.
const (
	maxRequest   = 64 << 10 // bytes, with its body, which no page wants
	idleTimeout  = time.Minute
	writeTimeout = 10 * time.Second
)

// serveConn answers the requests of a connection, one after the other. It is a task of the event loop: while it waits, for
// the client or for a stage, the loop goes on.
func serveConn(ctx context.Context, c net.Conn, h http.Handler) {
	defer c.Close()
	limit := &io.LimitedReader{R: c}
	in, out := bufio.NewReader(limit), bufio.NewWriter(c)
	for {
		limit.N = maxRequest
		_ = c.SetReadDeadline(time.Now().Add(idleTimeout))
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, err = io.Copy(io.Discard, r.Body)
		a := &answer{header: http.Header{}, code: http.StatusOK}
		h.ServeHTTP(a, r.WithContext(ctx))
		last := r.Close || err != nil || limit.N <= 0
		_ = c.SetWriteDeadline(time.Now().Add(writeTimeout))
		if a.response(r, last).Write(out) != nil || out.Flush() != nil || last {
			return
		}
	}
}

// An answer is an http.ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) response(r *http.Request, last bool) *http.Response {
	return &http.Response{StatusCode: a.code, ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: a.header,
		ContentLength: int64(a.body.Len()), Body: io.NopCloser(&a.body), Close: last}
}

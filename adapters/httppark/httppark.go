// Package httppark serves net/http without a goroutine for each idle connection. A parked keep-alive connection has no goroutine,
// no stack and no buffers: it takes about 1 KB, where http.Server takes 18 KB. The server, its handlers and its options stay those
// of net/http.
//
//	srv := &httppark.Server{Server: &http.Server{Addr: ":8080", Handler: mux}}
//	err := srv.ListenAndServe()
//	...
//	err = srv.Shutdown(ctx)
//
// While a connection is busy, http.Server serves it as always, on a goroutine of its own. Once a connection has been idle for
// ParkAfter, its goroutine ends. The next byte gives it a new one. So a client that sends its next request sooner costs nothing
// more than with http.Server, and a client that pauses longer costs the start of a goroutine for each pause.
//
// What differs from http.Server:
//
//   - A handler sees a connection of this package where it saw a *net.TCPConn or a *tls.Conn: in ConnContext, in ConnState, in
//     Hijack. Its method NetConn returns the connection that the listener has accepted.
//   - ConnContext is called each time that a connection gets a goroutine. ConnState is called as always: StateNew, StateClosed
//     and StateHijacked once for each connection.
//   - While a new connection is parked, ReadHeaderTimeout (or ReadTimeout) limits the wait for the first byte. From the first
//     byte on, http.Server measures the same time once more, over TLS each time that a part of a record has arrived.
//   - Over TLS, ConnState is called for a new connection after the handshake.
//
// HTTP/2 connections are not parked. Neither are connections that do not offer a descriptor by syscall.Conn. Only Linux parks at
// present: on other systems a Server is an http.Server.
//
// The example program examples/idle measures the bytes. Over TLS a parked connection takes 8 KB instead of 26, because crypto/tls
// keeps its keys and its last buffers, and offers no way to drop them.
//
// A connection that a handler has taken over, such as a WebSocket, is the handler's, and is not parked here. To wait for its next
// message without a goroutine, the handler moves it to an event loop and returns: examples/libraries/websocket shows how.
package httppark

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const parkAfter = 100 * time.Millisecond // the default of Server.ParkAfter

// A Server is an http.Server that parks idle connections. The fields must not change after the first call of a method that
// serves. Such a method sets ConnState of the http.Server to a function that calls the previous one.
type Server struct {
	*http.Server

	// ParkAfter is how long a connection keeps its goroutine without a byte of a request. A shorter time saves memory where
	// clients pause, and costs processor time. Zero means 100 ms.
	ParkAfter time.Duration

	mu      sync.Mutex
	started bool                           // ConnState is set
	changed func(net.Conn, http.ConnState) // the previous ConnState; may be nil
	lots    []*lot
}

// Serve serves srv with parked connections. It is short for the method Serve of a new Server. To serve several listeners, call the
// method of one Server: each new Server sets srv.ConnState, which must not happen while srv serves.
func Serve(ln net.Listener, srv *http.Server) error {
	return (&Server{Server: srv}).Serve(ln)
}

// Serve is like http.Server.Serve. A listener of crypto/tls is welcome. When Serve returns, ln is closed, and no connection of
// ln is parked any more: Shutdown and Close of the http.Server close parked connections at once.
func (s *Server) Serve(ln net.Listener) error {
	p, err := newPoller()
	if errors.Is(err, errors.ErrUnsupported) {
		return s.Server.Serve(ln)
	}
	if err != nil {
		_ = ln.Close()
		return err
	}
	l := newLot(s, ln, p)
	s.start(l)
	defer s.end(l)
	defer l.clear()
	var running sync.WaitGroup
	defer running.Wait()
	defer l.Close()
	running.Go(l.acceptAll)
	running.Go(l.pollAll)
	running.Go(func() {
		<-l.done
		l.poll.close()
	})
	return s.Server.Serve(l)
}

// ServeTLS is like http.Server.ServeTLS. It sets TLSConfig of the http.Server to the configuration that it uses.
func (s *Server) ServeTLS(ln net.Listener, certFile, keyFile string) error {
	c := &tls.Config{}
	if s.TLSConfig != nil {
		c = s.TLSConfig.Clone()
	}
	if len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetConfigForClient == nil || certFile != "" || keyFile != "" {
		cert, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			_ = ln.Close()
			return err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	for _, p := range s.nextProtos() {
		if !slices.Contains(c.NextProtos, p) {
			c.NextProtos = append(c.NextProtos, p)
		}
	}
	s.TLSConfig = c // http.Server speaks HTTP/2 only if it finds h2 here
	return s.Serve(tls.NewListener(ln, c))
}

// nextProtos returns the protocols that the http.Server speaks over TLS.
func (s *Server) nextProtos() (names []string) {
	h1, h2 := true, true
	if p := s.Protocols; p != nil {
		h1, h2 = p.HTTP1(), p.HTTP2()
	} else if m := s.TLSNextProto; m != nil {
		h2 = m["h2"] != nil
	}
	if h2 {
		names = append(names, "h2")
	}
	if h1 {
		names = append(names, "http/1.1")
	}
	return names
}

// ListenAndServe is like http.Server.ListenAndServe.
func (s *Server) ListenAndServe() error {
	ln, err := s.listen(":http")
	if err != nil {
		return err
	}
	return s.Serve(ln)
}

// ListenAndServeTLS is like http.Server.ListenAndServeTLS.
func (s *Server) ListenAndServeTLS(certFile, keyFile string) error {
	ln, err := s.listen(":https")
	if err != nil {
		return err
	}
	return s.ServeTLS(ln, certFile, keyFile)
}

func (s *Server) listen(address string) (net.Listener, error) {
	if s.Addr != "" {
		address = s.Addr
	}
	return net.Listen("tcp", address)
}

// SetKeepAlivesEnabled is like http.Server.SetKeepAlivesEnabled. Without keep-alives it closes the parked connections.
func (s *Server) SetKeepAlivesEnabled(v bool) {
	s.Server.SetKeepAlivesEnabled(v)
	if v {
		return
	}
	s.mu.Lock()
	lots := slices.Clone(s.lots)
	s.mu.Unlock()
	for _, l := range lots {
		l.closeParked(false)
	}
}

// Parked returns the number of parked connections.
func (s *Server) Parked() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lots {
		n += l.parkedNow()
	}
	return n
}

func (s *Server) start(l *lot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lots = append(s.lots, l)
	if s.started {
		return
	}
	s.started = true
	s.changed = s.ConnState
	s.ConnState = func(c net.Conn, state http.ConnState) {
		k, ours := c.(parkable)
		ours = ours && k.base().lot.server == s // another Server may have set ConnState of the same http.Server before
		if (!ours || k.base().changes(state)) && s.changed != nil {
			s.changed(c, state)
		}
	}
}

func (s *Server) end(l *lot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lots = slices.DeleteFunc(s.lots, func(x *lot) bool { return x == l })
}

// handshakeTimeout returns the time that http.Server allows for a TLS handshake, or 0 for no limit.
func (s *Server) handshakeTimeout() (least time.Duration) {
	for _, d := range []time.Duration{s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout} {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

func (s *Server) logf(format string, args ...any) {
	if s.ErrorLog != nil {
		s.ErrorLog.Printf(format, args...)
	} else {
		log.Printf(format, args...)
	}
}

func (s *Server) parkAfter() time.Duration {
	if s.ParkAfter > 0 {
		return s.ParkAfter
	}
	return parkAfter
}

// handshake performs the handshake of a new connection, unless http.Server has to do it: after an error, to log it and to answer
// a client that does not speak TLS. It reports whether the connection may be parked: it is certain to speak HTTP/1.
func handshake(c *tls.Conn, limit time.Duration) (http1 bool) {
	ctx := context.Background()
	if limit > 0 {
		_ = c.SetDeadline(time.Now().Add(limit))
		defer c.SetDeadline(time.Time{})
	}
	if c.HandshakeContext(ctx) != nil {
		return false
	}
	switch c.ConnectionState().NegotiatedProtocol {
	case "", "http/1.0", "http/1.1":
		return true
	}
	return false
}

// Package register implements a counter on two servers, with clients that retry. simulation/README.md shows how a simulation finds a bug in it: a
// request whose answer was lost is counted twice.
//
//	go test -v ./examples/register
package register

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/braidgo/braid/suspend"
)

// A Dialer connects to a server.
type Dialer func(ctx context.Context) (net.Conn, error)

// A Server counts requests. A request is a line with a unique name, and its answer is another line. Before a Server answers a request, it
// forwards the request to the Backup, if there is one, so that the Backup has counted each answered request.
type Server struct {
	Backup  Dialer
	Forgets bool // the bug: repeated requests are counted again

	Total int
	seen  map[string]bool
}

// Serve starts a task for each connection, until ln is closed.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		if err := suspend.Here().Go(func() { s.ServeConn(ctx, c) }); err != nil {
			return err
		}
	}
}

// ServeConn answers the requests on one connection until the connection ends.
func (s *Server) ServeConn(ctx context.Context, c net.Conn) {
	defer c.Close()
	backup := Client{Dial: s.Backup}
	defer backup.Close()
	for requests := bufio.NewScanner(c); requests.Scan(); {
		request := requests.Text()
		s.add(request)
		if s.Backup != nil && backup.Add(ctx, request) != nil {
			return
		}
		if _, err := fmt.Fprintln(c, "done"); err != nil {
			return
		}
	}
}

func (s *Server) add(request string) {
	if s.seen[request] && !s.Forgets {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[request] = true
	s.Total++
}

// A Client sends requests over one connection. After an error it dials again.
type Client struct {
	Dial Dialer

	conn    net.Conn
	answers *bufio.Scanner
}

// Add sends a request to the server, and sends it again if no answer arrives within a second. Add returns an error only if ctx ends first.
func (c *Client) Add(ctx context.Context, request string) error {
	for c.try(ctx, request) != nil {
		c.Close()
		if err := suspend.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) try(ctx context.Context, request string) (err error) {
	if c.conn == nil {
		if c.conn, err = c.Dial(ctx); err != nil {
			c.conn = nil
			return err
		}
		c.answers = bufio.NewScanner(c.conn)
	}
	if err := c.conn.SetDeadline(suspend.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(c.conn, request); err != nil {
		return err
	}
	if !c.answers.Scan() {
		return fmt.Errorf("no answer: %w", net.ErrClosed)
	}
	return nil
}

// Close closes the connection. The next Add dials again.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// Package register is a counter on two servers, with clients that retry. SIMULATION.md shows how a simulation finds the bug
// that retries bring: a request whose answer was lost is counted twice.
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

// A Server counts requests, and answers each with a line. A request is a line with a unique name. The Server passes it on to
// the Backup, if there is one, before it answers, so that the Backup has counted each answered request.
type Server struct {
	Backup  Dialer
	Forgets bool // the bug: the server counts a repeated request again

	Total int
	seen  map[string]bool
}

// Serve runs a task for each connection, until ln is closed.
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

// ServeConn answers the requests of one connection, until it ends.
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

// A Client sends requests over one connection, but dials again after an error.
type Client struct {
	Dial Dialer

	conn    net.Conn
	answers *bufio.Scanner
}

// Add sends a request to the server. A request that is not answered within a second is sent again. It returns an error only
// if ctx is done.
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

// Close closes the connection. The next Add makes a new one.
func (c *Client) Close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

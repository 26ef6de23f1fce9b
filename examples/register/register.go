// Package register is a counter on a server, clients that add to it and retry, and the bug that retries bring.
// SIMULATION.md tells how a seed finds it.
package register

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A Server counts. With Once it remembers the last request of each client, and answers a repeated one from memory.
type Server struct {
	Once bool

	total int
	last  map[string]int // the number of the request
}

// Total returns the count.
func (s *Server) Total() int { return s.total }

// Serve answers requests until ctx is done or ln is closed. A task serves each connection.
func (s *Server) Serve(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		if err := suspend.Here().Go(func() { s.serve(c) }); err != nil {
			return err
		}
	}
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		var client string
		var number int
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := fmt.Sscanf(line, "add %s %d", &client, &number); err != nil {
			return
		}
		if _, err := fmt.Fprintf(c, "%d\n", s.add(client, number)); err != nil {
			return
		}
	}
}

func (s *Server) add(client string, number int) int {
	if s.Once && number <= s.last[client] {
		return s.total
	}
	if s.last == nil {
		s.last = map[string]int{}
	}
	s.last[client] = number
	s.total++
	return s.total
}

// A Dialer connects to the server.
type Dialer func(ctx context.Context) (net.Conn, error)

// Add adds one to the counter, n times. A request that is not answered within a second is sent again.
func Add(ctx context.Context, client string, n int, dial Dialer) error {
	var c net.Conn
	var in *bufio.Reader
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for number := 1; number <= n; {
		if c == nil {
			var err error
			if c, err = dial(ctx); err != nil {
				c = nil
				if err := suspend.Sleep(ctx, 100*time.Millisecond); err != nil {
					return err
				}
				continue
			}
			in = bufio.NewReader(c)
		}
		if err := add(c, in, client, number); err != nil {
			c.Close()
			c = nil
			continue
		}
		number++
	}
	return nil
}

func add(c net.Conn, in *bufio.Reader, client string, number int) error {
	if err := c.SetDeadline(suspend.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c, "add %s %d\n", client, number); err != nil {
		return err
	}
	_, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

var _ = scope.Run

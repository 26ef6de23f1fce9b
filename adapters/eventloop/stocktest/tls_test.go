package stocktest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
)

var tlsRows = []row{
	{name: "crypto/tls, clients and a server", run: func(ctx context.Context, e *env) error {
		server, client := keys()
		address, err := e.serve(func(c net.Conn) { echo(tls.Server(c, server)) })
		if err != nil {
			return err
		}
		return e.tasks(10, 1, func(int) error {
			c, err := e.dial(ctx, "tcp", address)
			if err != nil {
				return err
			}
			secure := tls.Client(c, client)
			defer secure.Close()
			for i := 0; i < 50 && err == nil; i++ {
				err = exchange(secure)
			}
			return err
		})
	}},
	{name: "crypto/tls, a task reads and one writes", run: func(ctx context.Context, e *env) error {
		c, err := secured(ctx, e, echo)
		if err != nil {
			return err
		}
		defer c.Close()
		return e.tasks(2, 1, func(task int) error {
			if task == 0 {
				_, err := c.Write(make([]byte, much))
				return err
			}
			_, err := io.CopyN(io.Discard, c, much)
			return err
		})
	}},
	{name: "crypto/tls, two tasks write", held: deadlock, run: func(ctx context.Context, e *env) error {
		read := make(chan error)
		c, err := secured(ctx, e, func(c net.Conn) {
			_, err := io.CopyN(io.Discard, c, 2*much)
			read <- err
		})
		if err != nil {
			return err
		}
		defer c.Close()
		err = e.tasks(2, 8, func(int) error {
			n, err := io.Copy(c, bytes.NewReader(make([]byte, much/8)))
			if err == nil && n != much/8 {
				err = fmt.Errorf("%d bytes", n)
			}
			return err
		})
		if err != nil {
			return err
		}
		return <-read
	}},
}

const much = 32 << 20 // more than a socket buffers

// secured connects a task of e to a TLS server on goroutines.
func secured(ctx context.Context, e *env, handle func(c net.Conn)) (*tls.Conn, error) {
	server, client := keys()
	address, err := e.beside().serve(func(c net.Conn) { handle(tls.Server(c, server)) })
	if err != nil {
		return nil, err
	}
	c, err := e.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(c, client)
	return secure, secure.HandshakeContext(ctx)
}

// keys returns the configurations of httptest for a server and its client.
func keys() (server, client *tls.Config) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	client = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
	return &tls.Config{Certificates: s.TLS.Certificates}, client
}

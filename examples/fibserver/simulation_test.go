package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// The handler runs unchanged on a simulated network with latency. It runs in a bubble, because it uses packages time and context.
func TestHandlerInASimulation(t *testing.T) {
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 100 * time.Millisecond})
		gaveUp := 0
		s := newHTTPServer(func(ctx context.Context, n int) (int, error) {
			if err := suspend.Sleep(ctx, time.Duration(n)*time.Second); err != nil {
				gaveUp++
				return 0, err
			}
			return sequential(n % 20), nil
		})
		node := w.Node("server")
		ln, err := node.Listen("tcp", ":80")
		if err != nil {
			return err
		}
		if err := node.Go(func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = node.Go(func() {
					defer c.Close()
					for s.serveConn(s.ctx, c) == nil {
					}
				})
			}
		}); err != nil {
			return err
		}
		err = scope.Run(ctx, func(ctx context.Context, sc *scope.Scope) error {
			for i := range 4 {
				client := w.Node(fmt.Sprint("client", i))
				sc.Go(client, func(ctx context.Context) error { return ask(ctx, t, client) })
			}
			return nil
		})
		if err != nil {
			return err
		}
		// When a client has left, its computation ends.
		c, err := w.Node("client0").Dial(ctx, "tcp", "server:80")
		if err != nil {
			return err
		}
		fmt.Fprint(c, "GET /fib/50 HTTP/1.1\r\nHost: server\r\n\r\n")
		_ = suspend.Sleep(ctx, 5*time.Second)
		w.Node("client0").Crash()
		_ = suspend.Sleep(ctx, 5*time.Second)
		require.Equal(t, 1, gaveUp)
		return nil
	}, simulation.TestOptions{Options: simulation.Options{Bubble: true}, Seeds: 20})
}

// ask requests some numbers over one connection.
func ask(ctx context.Context, t *testing.T, n *simulation.Node) error {
	c, err := n.Dial(ctx, "tcp", "server:80")
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for _, number := range []int{10, 35, 40, 5} {
		fmt.Fprintf(c, "GET /fib/%d HTTP/1.1\r\nHost: server\r\n\r\n", number)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		want := number
		if number > cutOff {
			want = number % 20
		}
		require.Equal(t, fmt.Sprintln(sequential(want)), string(body))
	}
	return nil
}

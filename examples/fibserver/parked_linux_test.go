//go:build !braid_portable

package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// TestIdleConnectionsAreParked has clients that pause, also in the middle of a request. Only a connection in the middle of one has a task.
func TestIdleConnectionsAreParked(t *testing.T) {
	s := start(t)
	clients := make([]*client, 20)
	for i := range clients {
		clients[i] = dial(t, s)
	}
	half := dial(t, s)
	half.send("GET /fib/7 HT")
	stacks := make([]byte, 1<<20)
	busy := func() int {
		return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "(*httpServer).serveConn(")
	}
	for round := range 3 {
		for i, c := range clients {
			c.send(get(fmt.Sprint("/fib/", i%20)))
			c.expect(200, fmt.Sprint(sequential(i%20)))
		}
		schedtest.Eventually(t, "idle connections have no task", func() bool { return busy() == 1 })
		if round == 1 {
			half.send("TP/1.1\r\nHost: x\r\n\r\n")
			half.expect(200, "13")
			half.send("G")
		}
	}
	half.send(get("/fib/8")[1:])
	half.expect(200, "21")
}

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// A plain goroutine holds the ledger, and the handlers of all connections wait on one goroutine, while clients connect and leave.
// A client that leaves meanwhile is not served.
func TestHandlersWait(t *testing.T) {
	deadline := time.Now().Add(30 * time.Second)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String() // before netpoll takes over the listener
	s, stop, err := start(ln)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(request ...byte) net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		return c
	}
	read := func(c net.Conn, want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("read %q, %v; want %q", got, err, want)
		}
	}

	suspended := func(n int64) {
		t.Helper()
		for s.handlers.Stats().Suspended != n {
			if ctx.Err() != nil {
				t.Fatalf("%+v; want %d suspended", s.handlers.Stats(), n)
			}
			runtime.Gosched()
		}
	}

	first := dial(10)
	read(first, "1: 55\n")
	suspended(0)

	if err := s.ledger.LockContext(ctx); err != nil {
		t.Fatal(err)
	}
	gone, second, third := dial(10), dial(20), dial(25)
	suspended(3) // the handlers wait for the ledger, and the poller continues
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	suspended(2)
	s.ledger.Unlock()

	got := map[string]bool{}
	for _, c := range []net.Conn{second, third} {
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got[line] = true
	}
	if !got["2: 6765\n"] && !got["3: 6765\n"] || !got["2: 75025\n"] && !got["3: 75025\n"] || len(got) != 2 {
		t.Errorf("answers %v", got)
	}
	for _, c := range []net.Conn{first, second, third} {
		_ = c.Close()
	}
	if err := stop(ctx); err != nil {
		t.Error(err)
	}
}

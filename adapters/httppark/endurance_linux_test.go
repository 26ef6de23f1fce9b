package httppark_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// endures returns n if BRAID_ENDURANCE is set, and a fiftieth of n otherwise.
func endures(n int) int {
	if os.Getenv("BRAID_ENDURANCE") == "" {
		return n / 50
	}
	return n
}

// leavesNothing checks at the end of the test, after its server has ended, that no goroutine and no descriptor is left.
func leavesNothing(t *testing.T) {
	descriptors := func() int {
		all, _ := os.ReadDir("/proc/self/fd")
		return len(all)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // makes the runtime open its own epoll instance before the count
	require.NoError(t, err)
	_ = ln.Close()
	before, goroutines := descriptors(), goleak.IgnoreCurrent()
	t.Cleanup(func() {
		schedtest.Eventually(t, "no descriptor is left", func() bool { return descriptors() <= before })
		goleak.VerifyNone(t, goroutines)
	})
}

// idle opens n connections, of which two thirds send a request, and waits until all are parked.
func (s *site) idle(n int) (all []net.Conn) {
	all = make([]net.Conn, n)
	var wg sync.WaitGroup
	for part := range 10 {
		wg.Go(func() {
			for i := part; i < n; i += 10 {
				conn, err := s.dial()
				if err != nil {
					s.t.Error(err)
					return
				}
				all[i] = conn
				c := &client{conn, s.t, bufio.NewReaderSize(conn, 512)}
				if i%3 != 0 {
					c.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
					if _, body := c.answer(); body != "/a" {
						s.t.Error(body)
					}
				}
			}
		})
	}
	wg.Wait()
	s.parks(n)
	return all
}

// TestManyConnectionsLeaveNothing opens connections, parks them, and closes them from outside.
func TestManyConnectionsLeaveNothing(t *testing.T) {
	leavesNothing(t)
	s := open(t, "tcp", &http.Server{Handler: echo, IdleTimeout: time.Hour})
	const n = 500
	for range endures(100_000) / n {
		for i, c := range s.idle(n) {
			if i%2 == 0 {
				_, _ = io.WriteString(c, "GET /a HT") // closed in the middle of a request
			}
			if i%8 != 0 {
				_ = c.(*net.TCPConn).SetLinger(0) // frees the port at once; otherwise the ports run out
			}
			_ = c.Close()
		}
		s.parks(0)
	}
}

// TestShutdownOfManyConnections measures processor time, because the machine may be busy.
func TestShutdownOfManyConnections(t *testing.T) {
	leavesNothing(t)
	s := open(t, "tcp", &http.Server{Handler: echo, IdleTimeout: time.Hour})
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := int(min(uint64(endures(20_000)), limit.Cur/2-50)) // both ends are in this process
	all := s.idle(n)
	began := processor.Used()
	require.NoError(t, s.Shutdown(t.Context()))
	took := processor.Used() - began
	require.Zero(t, s.Parked())
	t.Log(n, "connections are closed in", took)
	if !schedtest.Race {
		require.Less(t, took, time.Second)
	}
	for _, c := range all {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := c.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_ = c.Close()
	}
}

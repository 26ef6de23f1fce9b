package httppark

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlaces opens many connections one after another, which use the same slot.
func TestPlaces(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Server{Server: &http.Server{}, ParkAfter: time.Millisecond}
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	for range 5 {
		c, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		require.Eventually(t, func() bool { return s.Parked() == 1 }, 20*time.Second, time.Millisecond)
		_ = c.Close()
		require.Eventually(t, func() bool {
			l := s.lots[0]
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.free) == len(l.places) && len(l.served) == 0
		}, 20*time.Second, time.Millisecond, "a closed connection keeps its place")
		require.Len(t, s.lots[0].places, 1)
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

// acceptOne returns a connection that is served, though not by http.Server, and its client.
func acceptOne(t *testing.T) (c *conn, client net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	poll, err := newPoller()
	require.NoError(t, err)
	l := newLot(&Server{Server: &http.Server{}, ParkAfter: time.Millisecond}, ln, poll)
	var running sync.WaitGroup
	running.Go(l.acceptAll)
	client, err = net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	k, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		_, _ = client.Close(), k.Close()
		_ = l.Close()
		running.Wait()
		poll.close()
		l.clear()
	})
	return k.(*conn), client
}

// TestAReadAfterTheEnd reads again after a Read has returned the end of the connection.
func TestAReadAfterTheEnd(t *testing.T) {
	c, client := acceptOne(t)
	var b [4]byte
	_, err := c.Read(b[:])
	require.Equal(t, io.EOF, err)
	fmt.Fprint(client, "a")
	n, err := c.Read(b[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, c.Close())
	_, err = client.Read(b[:])
	require.Equal(t, io.EOF, err, "the connection is parked, and not closed")
	require.Zero(t, c.lot.parkedNow())
}

// TestAReadInTheMiddle reads without a Peek after a request, as http.Server does in the middle of the next request. If a Read
// reports the end there, http.Server reads again, but nothing guarantees that it always will.
func TestAReadInTheMiddle(t *testing.T) {
	c, client := acceptOne(t)
	fmt.Fprint(client, "a request")
	var b [16]byte
	_, err := c.Read(b[:])
	require.NoError(t, err)
	c.changes(http.StateIdle)
	time.AfterFunc(20*time.Millisecond, func() { fmt.Fprint(client, "more") })
	n, err := c.Read(b[:])
	require.NoError(t, err, "a Read in the middle of a request has reported that the client has closed")
	require.Equal(t, "more", string(b[:n]))
}

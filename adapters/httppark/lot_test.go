package httppark

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlaces has many connections one after another, which share a place.
func TestPlaces(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux parks")
	}
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

// TestAReadAfterTheEnd reads on after a Read has said that the client has closed, as http.Server does not.
func TestAReadAfterTheEnd(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux parks")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	poll, err := newPoller()
	require.NoError(t, err)
	l := newLot(&Server{Server: &http.Server{}, ParkAfter: time.Millisecond}, ln, poll)
	go l.acceptAll()
	client, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	var b [4]byte
	_, err = c.Read(b[:])
	require.Equal(t, io.EOF, err)
	fmt.Fprint(client, "a")
	n, err := c.Read(b[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.NoError(t, c.Close())
	_, err = client.Read(b[:])
	require.Equal(t, io.EOF, err, "the connection is parked, and not closed")
	require.Zero(t, l.count())
	require.NoError(t, l.Close())
	poll.close()
	l.clear()
}

// TestAReadInTheMiddle stops sending where http.Server has an empty buffer, and the connection is idle for ConnState. http.Server
// forgives the end of the client there, and reads again, but nothing says that it will.
func TestAReadInTheMiddle(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux parks")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &Server{Server: &http.Server{}, ParkAfter: time.Millisecond}
	served := make(chan error)
	go func() { served <- s.Serve(ln) }()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n")
	_, err = c.Read(make([]byte, 16))
	require.NoError(t, err)
	require.Never(t, func() bool {
		l := s.lots[0]
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.served) == 1 && l.served[0].state == leaving
	}, 50*time.Millisecond, time.Millisecond, "a Read in the middle of a request has said that the client has closed")
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

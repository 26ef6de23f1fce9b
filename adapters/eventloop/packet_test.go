package eventloop_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
)

func TestUDPEcho(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	for _, network := range []string{"udp", "udp4", "udp6"} {
		t.Run(network, func(t *testing.T) {
			host := map[string]string{"udp": "127.0.0.1", "udp4": "127.0.0.1", "udp6": "[::1]"}[network]
			server, err := l.ListenPacket(network, host+":0")
			if network == "udp6" && err != nil {
				t.Log("there is no IPv6 here:", err)
				return
			}
			require.NoError(t, err)
			defer server.Close()
			require.NoError(t, l.Go(func() {
				p := make([]byte, 1<<16)
				for {
					n, from, err := server.ReadFrom(p)
					if err != nil {
						return
					}
					_, _ = server.WriteTo(p[:n], from)
				}
			}))
			const clients, packets = 20, 30
			done := make(chan error, clients)
			for i := range clients {
				require.NoError(t, l.Go(func() {
					done <- func() error {
						c, err := l.Dial(context.Background(), network, server.LocalAddr().String())
						if err != nil {
							return err
						}
						defer c.Close()
						p := make([]byte, 100)
						for k := range packets { // one packet at a time, so that the loopback loses none
							want := fmt.Sprint(i, " ", k)
							if k == 1 {
								want = "" // an empty packet is not the end
							}
							if _, err := c.Write([]byte(want)); err != nil {
								return err
							}
							_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
							n, err := c.Read(p)
							if err != nil || string(p[:n]) != want {
								return fmt.Errorf("%q in place of %q: %v", p[:n], want, err)
							}
						}
						return nil
					}()
				}))
			}
			within(t, func() {
				for range clients {
					require.NoError(t, <-done)
				}
			})
		})
	}
}

func TestPacketConn(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := must(l.ListenPacket("udp", "127.0.0.1:0")), must(l.ListenPacket("udp", "127.0.0.1:0"))
	defer b.Close()
	var _ net.PacketConn = a
	task(t, l, func() {
		n, err := a.WriteTo([]byte("long"), b.LocalAddr())
		require.NoError(t, err)
		require.Equal(t, 4, n)
		p := make([]byte, 2)
		n, from, err := b.ReadFrom(p)
		require.NoError(t, err)
		require.Equal(t, "lo", string(p[:n]), "the rest is lost")
		require.Equal(t, a.LocalAddr().String(), from.String())

		_, err = a.WriteTo([]byte("x"), &net.TCPAddr{})
		require.Error(t, err)
		_, err = a.WriteTo(make([]byte, 1<<17), b.LocalAddr())
		require.Error(t, err, "too long")

		require.NoError(t, b.SetDeadline(time.Now().Add(20*time.Millisecond)))
		_, _, err = b.ReadFrom(p)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, b.SetDeadline(time.Time{}))
	})
	failed := make(chan error, 1)
	require.NoError(t, l.Go(func() { _, _, err := a.ReadFrom(make([]byte, 1)); failed <- err }))
	suspended(t, l, 1)
	require.NoError(t, a.Close())
	within(t, func() { require.ErrorIs(t, <-failed, net.ErrClosed) })
	require.ErrorIs(t, a.Close(), net.ErrClosed)
	_, err := l.ListenPacket("tcp", "127.0.0.1:0")
	require.ErrorAs(t, err, new(net.UnknownNetworkError))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = l.Dial(ctx, "udp", b.LocalAddr().String())
	require.ErrorIs(t, err, context.Canceled)
}

// Adopt makes a Conn of other kinds of files: a pipe, a socket of package net. It refuses a regular file, and leaves it
// unchanged.
func TestAdopt(t *testing.T) {
	l := open(t, eventloop.Options{})
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer w.Close()
	c, err := l.Adopt(r)
	require.NoError(t, err)
	read := make(chan string, 1)
	require.NoError(t, l.Go(func() { p := make([]byte, 10); n := must(c.Read(p)); read <- string(p[:n]) }))
	suspended(t, l, 1)
	must(w.WriteString("hello"))
	within(t, func() { require.Equal(t, "hello", <-read) })
	require.NoError(t, c.Close())
	_, err = w.WriteString("x")
	require.Error(t, err, "the last reader has gone")

	ln := must(net.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	stock := must(net.Dial("tcp", ln.Addr().String()))
	peer := must(ln.Accept())
	defer peer.Close()
	f := must(stock.(*net.TCPConn).File())
	require.NoError(t, stock.Close())
	c, err = l.Adopt(f)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, peer.RemoteAddr().String(), c.LocalAddr().String())
	require.Equal(t, "tcp", c.RemoteAddr().Network())
	task(t, l, func() { must(c.Write([]byte("x"))) })
	must(peer.Read(make([]byte, 1)))

	regular := file(t, []byte("content"))
	_, err = l.Adopt(regular)
	require.ErrorContains(t, err, "unsupported")
	must(regular.Read(make([]byte, 7)))
	null := must(os.Open(os.DevNull))
	defer null.Close()
	if _, err := l.Adopt(null); err != nil { // epoll cannot wait for this file
		must(null.Stat())
	}
}

package simulation_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// grpc-go reads by RawConn.Read, so that a connection that waits has no buffer.
func TestGuestNetRawRead(t *testing.T) {
	if !simulation.Nodes() {
		return
	}
	onNode(t, func(w *simulation.World) {
		w.Node("server").Start(func(context.Context, *simulation.Host) {
			l, err := net.Listen("tcp", ":80")
			for _, text := range []string{"first", "second", ""} {
				c, _ := l.Accept()
				time.Sleep(time.Second)
				_, err = io.WriteString(c, text)
				if text == "" {
					err = c.Close()
				}
			}
			require.NoError(t, err)
		})
		time.Sleep(time.Second)
		buf := make([]byte, 100)
		begin := func() (*net.TCPConn, syscall.RawConn) {
			c, err := net.Dial("tcp", "server:80")
			require.NoError(t, err)
			raw, err := c.(*net.TCPConn).SyscallConn()
			require.NoError(t, err)
			return c.(*net.TCPConn), raw
		}
		read := func(raw syscall.RawConn, p []byte) (n int, err error) {
			tries := 0
			failed := raw.Read(func(fd uintptr) bool {
				tries++
				n, err = syscall.Read(int(fd), p)
				return err != syscall.EAGAIN
			})
			require.NoError(t, failed)
			require.Equal(t, 2, tries, "it waits once")
			return n, err
		}

		c, raw := begin()
		n, err := read(raw, buf[:2])
		require.NoError(t, err)
		require.Equal(t, "fi", string(buf[:n]))
		n, err = c.Read(buf)
		require.NoError(t, err)
		require.Equal(t, "rst", string(buf[:n]), "Read returns what the call has left")
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		require.ErrorContains(t, raw.Read(func(uintptr) bool { return false }), "i/o timeout")
		require.NoError(t, c.Close())
		require.ErrorIs(t, raw.Read(func(uintptr) bool { return true }), net.ErrClosed)

		c, raw = begin()
		time.AfterFunc(10*time.Millisecond, func() { _ = c.Close() })
		require.ErrorIs(t, raw.Read(func(uintptr) bool { return false }), net.ErrClosed)

		c, raw = begin()
		n, err = read(raw, buf)
		require.NoError(t, err)
		require.Zero(t, n, "the end")
		require.NoError(t, c.Close())
	})
}

package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

// These tests need the overlay, with which package net uses the network of a node. simulation/overlay runs them.

// onNode runs f on one of two nodes, and requires that nothing is wrong.
func onNode(t *testing.T, f func(w *simulation.World)) {
	t.Helper()
	r := guests(t, func(_ context.Context, w *simulation.World) error {
		done := make(chan struct{})
		w.Node("a").Start(func(context.Context, *simulation.Host) { defer close(done); f(w) })
		<-done
		return nil
	})
	require.NoError(t, r.Err)
}

// TestGuestNetIsThatOfThisMachine compares a World with this machine: types, texts and errors are the same.
func TestGuestNetIsThatOfThisMachine(t *testing.T) {
	real := sockets(t.TempDir())
	if !simulation.Nodes() {
		return
	}
	var simulated []string
	dir := t.TempDir()
	kept := filepath.Join(dir, "s")
	require.NoError(t, os.WriteFile(kept, nil, 0o600))
	onNode(t, func(*simulation.World) { simulated = sockets(dir) })
	require.Equal(t, strings.Join(real, "\n"), strings.Join(simulated, "\n"))
	require.FileExists(t, kept, "the path of a unix socket is one of the node")
}

var portNumber = regexp.MustCompile(`:\d\d+\b`)

// sockets uses package net and returns the results, without port numbers.
func sockets(dir string) (seen []string) {
	see := func(what string, values ...any) {
		var b strings.Builder
		for _, v := range values {
			fmt.Fprintf(&b, " %v", v)
			for err, ok := v.(error); ok && err != nil; err = errors.Unwrap(err) {
				fmt.Fprintf(&b, " [%T]", err)
			}
			if err, ok := v.(net.Error); ok && err.Timeout() {
				b.WriteString(" timeout")
			}
		}
		seen = append(seen, what+":"+portNumber.ReplaceAllString(strings.ReplaceAll(b.String(), dir, "DIR"), ":port"))
	}
	past := time.Unix(1, 0)
	buf := make([]byte, 100)
	read := func(r io.Reader, n int) string {
		n, err := io.ReadFull(r, buf[:n])
		return fmt.Sprint(string(buf[:n]), err)
	}
	pair := func(l net.Listener) (c, s net.Conn) {
		accepted := make(chan net.Conn)
		go func() { s, _ := l.Accept(); accepted <- s }()
		c, err := net.Dial(l.Addr().Network(), l.Addr().String())
		see("dial", err)
		s = <-accepted
		see("ends", fmt.Sprintf("%T %T", c, s), c.RemoteAddr(), s.LocalAddr(), s.RemoteAddr().String() == c.LocalAddr().String())
		return c, s
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	see("listen", fmt.Sprintf("%T %T", l, l.Addr()), l.Addr(), err)
	_, err = net.Listen("tcp", l.Addr().String())
	see("listen twice", err)
	_, err = net.Listen("tcp", "192.0.2.1:8080")
	see("listen elsewhere", err)
	any, err := net.Listen("tcp", ":0")
	see("listen everywhere", any.Addr(), any.Close(), err)
	_, err = net.Dial("tcp", "127.0.0.1:9999")
	see("dial nobody", err, errors.Is(err, syscall.ECONNREFUSED))

	c, s := pair(l)
	tc := c.(*net.TCPConn)
	see("options", tc.SetNoDelay(false), tc.SetKeepAlive(true), tc.SetKeepAlivePeriod(time.Second), tc.SetLinger(1), tc.SetReadBuffer(1<<16),
		tc.SetWriteBuffer(1<<16), tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 2}))
	n, err := (&net.Buffers{[]byte("ab"), []byte("c")}).WriteTo(c)
	see("buffers", n, err, read(s, 3))
	file, _ := os.CreateTemp("", "")
	_, _ = file.WriteString("file")
	_, _ = file.Seek(0, io.SeekStart)
	n, err = io.Copy(c, file)
	see("from a file", n, err, read(s, 4))
	see("past", s.SetReadDeadline(past))
	_, err = s.Read(buf)
	see("read late", err, errors.Is(err, os.ErrDeadlineExceeded))
	see("past", s.SetDeadline(time.Time{}), s.SetWriteDeadline(past))
	_, err = s.Write([]byte("x"))
	see("write late", err)
	see("no deadline", s.SetDeadline(time.Time{}))
	k, err := s.Read(nil)
	see("read nothing", k, err)
	_, _ = c.Write([]byte("to the file"))
	see("close half", tc.CloseWrite())
	_, err = c.Write([]byte("x"))
	see("write behind it", err, errors.Is(err, syscall.EPIPE))
	n, err = io.Copy(file, s)
	see("to a file", n, err)
	_, err = s.Write([]byte("back"))
	see("the other half", err, read(c, 4))
	see("close", c.Close(), c.Close())
	_, err = c.Read(buf)
	see("read closed", err, errors.Is(err, net.ErrClosed))
	see("set closed", c.SetDeadline(past))
	_ = s.Close()

	a, b := pair(l)
	c, s = pair(l)
	_, _ = a.Write([]byte("through"))
	_ = a.(*net.TCPConn).CloseWrite()
	n, err = io.Copy(c, b)
	see("from a connection", n, err, read(s, 7))
	for _, x := range []net.Conn{a, b, c, s} {
		_ = x.Close()
	}
	see("past", l.(*net.TCPListener).SetDeadline(past))
	_, err = l.Accept()
	see("accept late", err)
	see("close", l.Close(), l.Close())
	_, err = l.Accept()
	see("accept closed", err)

	for _, network := range []string{"udp4", "udp6"} {
		at := netip.MustParseAddrPort(map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0"}[network])
		p, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
		see("listen", fmt.Sprintf("%T", p.LocalAddr()), p.LocalAddr(), err)
		to := p.LocalAddr().(*net.UDPAddr)
		_, err = net.ListenPacket(network, to.String())
		see("listen twice", err)
		c, err := net.DialUDP(network, nil, to)
		see("dial", c.RemoteAddr(), err)
		me := c.LocalAddr().(*net.UDPAddr)
		see("options", p.SetReadBuffer(1<<16), p.SetWriteBuffer(1<<16))
		k, err := c.Write([]byte("one"))
		see("write", k, err)
		k, from, err := p.ReadFromUDPAddrPort(buf)
		see("read", string(buf[:k]), from == me.AddrPort(), from, err)
		k, err = p.WriteToUDPAddrPort([]byte("two"), from)
		see("write", k, err, read(c, 3))
		k, _, err = c.WriteMsgUDP([]byte("three"), nil, nil)
		see("write", k, err)
		k, oob, _, udp, err := p.ReadMsgUDP(buf, buf[50:])
		see("read", string(buf[:k]), oob, udp, err)
		k, err = p.WriteTo([]byte("four"), udp)
		see("write", k, err, read(c, 4))
		k, _, err = p.WriteMsgUDPAddrPort([]byte("five"), nil, from)
		see("write", k, err, read(c, 4))
		_, _, err = c.WriteMsgUDPAddrPort([]byte("six"), nil, netip.AddrPort{})
		k, who, _ := p.ReadFrom(buf[:2])
		see("cut off", err, string(buf[:k]), who)
		_, err = c.WriteTo([]byte("x"), to)
		see("write to", err)
		_, err = p.Write([]byte("x"))
		see("write to nobody", err)
		_, err = p.WriteTo(make([]byte, 1<<16), udp)
		see("too long", err, errors.Is(err, syscall.EMSGSIZE))
		see("nothing left", c.SetReadDeadline(past))
		_, err = c.Read(buf)
		see("read late", err)
		see("close", c.Close(), p.Close(), p.Close())
		_, _, err = p.ReadFrom(buf)
		see("read closed", err)
	}

	path := filepath.Join(dir, "s")
	_, err = net.Dial("unix", path)
	see("dial nobody", err, errors.Is(err, os.ErrNotExist))
	l, err = net.Listen("unix", path)
	see("listen", l.Addr(), err)
	_, err = net.Listen("unix", path)
	see("listen twice", err)
	c, s = pair(l)
	u := s.(*net.UnixConn)
	_, _, err = c.(*net.UnixConn).WriteMsgUnix([]byte("one"), nil, nil)
	k, oob, _, from, err2 := u.ReadMsgUnix(buf, buf[50:])
	see("messages", err, string(buf[:k]), oob, from, err2)
	_, _ = c.Write([]byte("two"))
	k, from, err = u.ReadFromUnix(buf)
	see("from", string(buf[:k]), from, err)
	tl, _ := net.Listen("tcp4", "127.0.0.1:0")
	a, b = pair(tl)
	_, _ = a.Write([]byte("three"))
	_ = a.Close()
	n, err = io.Copy(c, b)
	see("from TCP", n, err, read(s, 5))
	for _, x := range []io.Closer{b, c, s, l, tl} {
		_ = x.Close()
	}
	_, err = net.Dial("unix", path)
	see("dial nobody", err)
	_ = os.Remove(file.Name())
	return seen
}

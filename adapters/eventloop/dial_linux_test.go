package eventloop_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// resolve makes every name stand for ips until the test ends.
func resolve(t *testing.T, ips ...[4]byte) {
	stock := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = stock })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		c, server := net.Pipe()
		go answer(server, ips)
		return c, nil
	}}
}

// answer is a DNS server for one connection. Each message has one question.
func answer(c net.Conn, ips [][4]byte) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		end := 12
		for q[end] != 0 {
			end += 1 + int(q[end])
		}
		end += 5 // skips the root, the type and the class
		a := append([]byte{q[0], q[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
		if binary.BigEndian.Uint16(q[end-4:]) == 1 { // a question for an A record
			a[7] = byte(len(ips))
			for _, ip := range ips {
				a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ip[0], ip[1], ip[2], ip[3])
			}
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}

func TestDialByName(t *testing.T) {
	resolve(t, [4]byte{127, 0, 0, 2}, [4]byte{127, 0, 0, 1})
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0")) // the first address refuses the connection
	go ln.Serve(context.Background(), echo)
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for _, network := range []string{"tcp", "tcp4"} {
		task(t, l, func() {
			c, err := l.Dial(context.Background(), network, "one.test.:"+port)
			if err != nil {
				t.Error(err)
				return
			}
			if got := c.RemoteAddr().String(); got != ln.Addr().String() {
				t.Error(got)
			}
			c.Close()
		})
	}
}

// full opens a socket whose backlog is full, so that clients wait.
func full(t *testing.T, family int, sa syscall.Sockaddr, network string) (addr net.Addr) {
	t.Helper()
	s := must(syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0))
	t.Cleanup(func() { syscall.Close(s) })
	must(0, syscall.Bind(s, sa))
	must(0, syscall.Listen(s, 0))
	switch sa := must(syscall.Getsockname(s)).(type) {
	case *syscall.SockaddrInet4:
		addr = &net.TCPAddr{IP: sa.Addr[:], Port: sa.Port}
	case *syscall.SockaddrUnix:
		addr = &net.UnixAddr{Name: sa.Name, Net: network}
	}
	c := must(net.Dial(network, addr.String()))
	t.Cleanup(func() { c.Close() })
	return addr
}

// A cancelled Dial returns the error of the cancellation, whatever errors other addresses have caused.
func TestDialCancelledAtTheSecondAddress(t *testing.T) {
	l := open(t, eventloop.Options{})
	addr := full(t, syscall.AF_INET, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, "tcp")
	resolve(t, [4]byte{127, 0, 0, 2}, [4]byte{127, 0, 0, 1}) // the first address refuses
	_, port, _ := net.SplitHostPort(addr.String())
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	failed := make(chan error, 1)
	must(0, l.Go(func() {
		_, err := l.Dial(ctx, "tcp", "two.test.:"+port)
		failed <- err
	}))
	schedtest.Eventually(t, "it connects to the second address", func() bool {
		return l.Stats().Suspended == 1 && l.Stats().Running == 0 && connecting(addr)
	})
	cancel(cause)
	within(t, func() {
		if err := <-failed; !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// connecting reports whether a socket of this machine waits for a connection to addr.
func connecting(addr net.Addr) bool {
	a := addr.(*net.TCPAddr)
	ip := a.IP.To4()
	want := fmt.Sprintf("%08X:%04X 02", binary.NativeEndian.Uint32(ip), a.Port) // the state SYN_SENT
	return strings.Contains(string(must(os.ReadFile("/proc/self/net/tcp"))), want)
}

// The system chooses a name for a socket without one.
func TestUnixSocketWithoutName(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("unix", ""))
	go ln.Serve(context.Background(), echo)
	if name := ln.Addr().String(); len(name) < 2 || name[0] != '@' {
		t.Fatalf("%q", name)
	}
	task(t, l, func() { must(0, roundTripUnix(l, ln.Addr().String())) })
}

// If a Dial to a port of this machine without a listener gets this port for its own end, it connects to itself. With this many
// attempts, one run in ten meets this case; TestIsSame tests the rest.
func TestNobodyIsConnectedToItself(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	addr := ln.Addr().(*net.TCPAddr)
	must(0, ln.Close())
	addr.Port ^= 1 // the system gives odd ports to listeners and even ports to dialers, or vice versa
	task(t, l, func() {
		for i := range 1500 {
			if _, err := l.Dial(context.Background(), "tcp", addr.String()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%d: %v", i, err)
				return
			}
		}
	})
}

// If the context of a Dial panics, the connection is closed at once, not only by the Close of the Loop.
func TestDialWithAContextThatPanics(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := descriptors()
	schedtest.Panics(t, "moody", func() { _, _ = l.Dial(&schedtest.Moody{Context: ctx, Panic: "moody"}, "tcp", ln.Addr().String()) })
	schedtest.Eventually(t, "no descriptor is left", func() bool { return descriptors() <= before })
}

package netstack_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// small has buffers that are too small for a Write of a megabyte.
var small = netstack.Options{SendBuffer: 1 << 16, ReceiveBuffer: 1 << 16}

// fails requires that err is a *net.OpError of op that wraps want.
func fails(t testing.TB, err error, op string, want error) {
	t.Helper()
	var e *net.OpError
	require.ErrorAs(t, err, &e)
	require.Equal(t, op, e.Op)
	require.ErrorIs(t, err, want)
}

// Both ends of a connection get the errors that sockets of the kernel return.
func TestErrors(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
	one := make([]byte, 1)

	x, y := pair(t, a, b)
	must(y.Write([]byte("last")))
	must(0, y.Close())
	require.Equal(t, "last", string(must(io.ReadAll(x))))
	n, err := x.Read(one)
	require.Zero(t, n)
	require.Equal(t, io.EOF, err)
	schedtest.Eventually(t, "writes fail", func() bool { _, err = x.Write(one); return err != nil })
	if !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}

	x, y = pair(t, a, b)
	must(0, y.SetLinger(0))
	must(0, y.Close())
	_, err = x.Read(one)
	fails(t, err, "read", syscall.ECONNRESET)

	x, _ = pair(t, a, b)
	must(0, x.CloseWrite())
	_, err = x.Write(one)
	fails(t, err, "write", syscall.EPIPE)
	must(0, x.CloseRead())
	_, err = x.Read(one)
	require.Equal(t, io.EOF, err)
	must(0, x.Close())
	for op, f := range map[string]func() error{
		"read": func() error { _, err := x.Read(nil); return err }, "write": func() error { _, err := x.Write(nil); return err },
		"close": x.Close, "set": func() error { return x.SetDeadline(time.Now()) },
	} {
		fails(t, f(), op, net.ErrClosed)
	}
	fails(t, x.CloseWrite(), "close", net.ErrClosed)
	fails(t, x.SetNoDelay(true), "set", net.ErrClosed)
	require.Equal(t, "10.0.0.1", x.LocalAddr().(*net.TCPAddr).IP.String())

	_, err = a.Dial(background, "tcp", "10.0.0.2:9")
	fails(t, err, "dial", syscall.ECONNREFUSED)
	for _, addr := range []string{"10.0.0.2", "example.org:80", "10.0.0.2:http", "10.0.0.2:70000"} {
		var wrong *net.AddrError
		_, err = a.Dial(background, "tcp", addr)
		require.ErrorAs(t, err, &wrong, addr)
	}
	var unknown net.UnknownNetworkError
	_, err = a.Dial(background, "udp", "10.0.0.2:9")
	require.ErrorAs(t, err, &unknown)
	_, err = a.Listen("tcp", "10.0.0.9:80")
	fails(t, err, "listen", syscall.EADDRNOTAVAIL)
	ln := must(a.Listen("tcp", "10.0.0.1:80"))
	_, err = a.Listen("tcp", "10.0.0.1:80")
	fails(t, err, "listen", syscall.EADDRINUSE)
	must(0, ln.SetDeadline(time.Now()))
	_, err = ln.Accept()
	fails(t, err, "accept", os.ErrDeadlineExceeded)
	require.Panics(t, func() { _ = ln.Serve(background, nil) })
	require.Panics(t, func() { _, _ = netstack.New(netstack.Options{}) })

	routed, _ := stacks(t, netstack.Options{Routes: prefixes("10.0.0.0/24")}, netstack.WireOptions{})
	_, err = routed.Dial(background, "tcp", "192.168.0.1:80")
	if !errors.Is(err, syscall.EHOSTUNREACH) && !errors.Is(err, syscall.ENETUNREACH) {
		t.Error(err)
	}
}

// A Dial that gets no answer ends with its context, and leaves nothing behind.
func TestDialEnds(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	a, _ := stacks(t, netstack.Options{}, netstack.WireOptions{})
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() { _, err := a.Dial(ctx, "tcp", "10.0.0.77:1"); done <- err }()
	schedtest.Eventually(t, "it dials", func() bool { return len(a.Stack().RegisteredEndpoints()) > 0 })
	cancel()
	fails(t, <-done, "dial", context.Canceled)
	_, err := a.Dial(ctx, "tcp", "10.0.0.2:1")
	fails(t, err, "dial", context.Canceled)
	require.Zero(t, a.Open())
	schedtest.Eventually(t, "no endpoint", func() bool { return len(a.Stack().RegisteredEndpoints()) == 0 })
}

// IPv6 and IPv4 clients reach a Listener on all addresses. A Listener on an address of one kind accepts only this kind.
func TestAddresses(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
	for network, want := range map[string][2]bool{"tcp": {true, true}, "tcp4": {true, false}, "tcp6": {false, true}} {
		ln := must(b.Listen(network, ":80"))
		for i, addr := range []string{"10.0.0.2:80", "[fd00::2]:80"} {
			c, err := a.Dial(background, "tcp", addr)
			require.Equal(t, want[i], err == nil, "%s to %s: %v", addr, network, err)
			if err == nil {
				require.Equal(t, addr, c.RemoteAddr().String())
				require.Equal(t, c.LocalAddr().String(), must(ln.Accept()).RemoteAddr().String())
			}
		}
		must(0, ln.Close())
	}
	ln := must(a.Listen("tcp", "10.0.0.1:0")) // a stack reaches its own address without the wire
	must(0, must(a.Dial(background, "tcp", ln.Addr().String())).Close())
}

func suspended(t testing.TB, l *eventloop.Loop, n int64) {
	t.Helper()
	schedtest.Eventually(t, "tasks wait", func() bool { s := l.Stats(); return s.Suspended >= n && s.Running == 0 })
}

// A deadline, a Close and a context each end waiting operations, even those that wait behind others.
func TestWaitsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(c *netstack.Conn, cancel func())
		want error
	}{
		"close":    {func(c *netstack.Conn, _ func()) { _ = c.Close() }, net.ErrClosed},
		"deadline": {func(c *netstack.Conn, _ func()) { _ = c.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"soon":     {func(c *netstack.Conn, _ func()) { _ = c.SetDeadline(time.Now().Add(time.Millisecond)) }, os.ErrDeadlineExceeded},
		"sooner": {func(c *netstack.Conn, _ func()) {
			_ = c.SetDeadline(time.Now().Add(time.Hour))
			_ = c.SetDeadline(time.Now().Add(time.Millisecond))
		}, os.ErrDeadlineExceeded},
		"later": {func(c *netstack.Conn, _ func()) {
			_ = c.SetDeadline(time.Now().Add(time.Microsecond))
			_ = c.SetDeadline(time.Now().Add(10 * time.Millisecond))
		}, os.ErrDeadlineExceeded},
		"context": {func(_ *netstack.Conn, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			loop := must(eventloop.New(eventloop.Options{}))
			defer loop.Close()
			a, b := stacks(t, small, netstack.WireOptions{})
			x, y := pair(t, a, b)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			errs, large := make(chan error, 4), make([]byte, 1<<20)
			for range 2 {
				must(0, loop.Go(func() { _, err := x.ReadContext(ctx, make([]byte, 1)); errs <- err }))
				must(0, loop.Go(func() { _, err := x.WriteContext(ctx, large); errs <- err }))
			}
			suspended(t, loop, 4)
			c.end(x, cancel)
			for range 4 {
				require.ErrorIs(t, <-errs, c.want)
			}
			if c.want == net.ErrClosed {
				return
			}
			must(0, x.SetDeadline(time.Time{})) // clears the deadline, so that operations succeed again
			must(y.Write([]byte("x")))
			must(io.ReadFull(x, make([]byte, 1)))
		})
	}
}

// Several Writes run at the same time, and each stays whole.
func TestWritesAreWhole(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		a, b := stacks(t, small, netstack.WireOptions{})
		x, y := pair(t, a, b)
		const writers, size = 3, 1 << 19
		var all sync.WaitGroup
		for w := range writers {
			all.Add(1)
			must(0, s.Go(func() {
				defer all.Done()
				if n, err := x.Write(bytes.Repeat([]byte{byte(w)}, size)); n != size || err != nil {
					t.Error(n, err)
				}
			}))
		}
		for range writers {
			got := make([]byte, size)
			must(io.ReadFull(y, got))
			if bytes.Count(got, got[:1]) != size {
				t.Error("torn")
			}
		}
		all.Wait()
	})
}

// A task whose Reads never wait lets another task run.
func TestATaskThatNeverWaitsYields(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
	x, y := pair(t, a, b)
	must(x.Write(make([]byte, 1000)))
	must(0, x.CloseWrite())
	schedtest.Eventually(t, "all has come", func() bool {
		return y.Readable() && a.Stack().Stats().TCP.CurrentEstablished.Value() == 0
	})
	s, turns, most := fifo.New(fifo.Options{}), 0, 0
	require.NoError(t, s.Run(background, func(context.Context) error {
		over := false
		must(0, s.Go(func() {
			for !over {
				turns++
				suspend.Yield()
			}
		}))
		for last, reads := 0, 0; ; reads++ {
			if n, err := y.Read(make([]byte, 1)); n == 0 {
				require.Equal(t, io.EOF, err)
				break
			}
			if turns > last {
				last, reads = turns, 0
			}
			most = max(most, reads)
		}
		over = true
		return nil
	}))
	require.LessOrEqual(t, most, 64)
	require.GreaterOrEqual(t, turns, 1000/64)
}

// A connection, a message and a timeout are cases of one Select.
func TestReadable(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
		x, y := pair(t, a, b)
		messages := chanx.New[string](0)
		got := make(chan string)
		choose := func() {
			must(0, s.Go(func() {
				got <- must(suspend.Do(background, suspend.Choose(
					suspend.Map(y.ReadableOp(), func(struct{}, error) (string, error) { return "readable", nil }),
					messages.RecvOp(),
					suspend.Map(suspend.After(time.Minute), func(time.Time, error) (string, error) { return "late", nil }),
				)))
			}))
		}
		choose()
		must(0, messages.Send(background, "message"))
		require.Equal(t, "message", <-got)
		choose()
		must(x.Write([]byte("x")))
		require.Equal(t, "readable", <-got)
		choose() // the Select has read nothing
		require.Equal(t, "readable", <-got)
		must(y.Read(make([]byte, 1)))
		choose()
		must(0, y.SetReadDeadline(time.Now().Add(time.Millisecond)))
		require.Equal(t, "readable", <-got)
		must(0, y.SetReadDeadline(time.Time{}))
		choose()
		must(0, x.Close())
		require.Equal(t, "readable", <-got)
		must(0, y.Close())
		choose()
		require.Equal(t, "readable", <-got)
	})
}

// The handlers' context ends when the context of Serve ends, but not when the Listener is closed.
func TestServe(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		a, b := stacks(t, netstack.Options{On: s}, netstack.WireOptions{})
		ln := must(b.Listen("tcp", ":80"))
		ctx, cancel := context.WithCancel(background)
		served, handled := make(chan error), make(chan error, 1)
		serve := func() {
			served <- ln.Serve(ctx, func(ctx context.Context, c net.Conn) {
				_, err := c.Read(make([]byte, 1))
				handled <- err
			})
		}
		go serve()
		c := must(a.Dial(background, "tcp", "10.0.0.2:80"))
		schedtest.Eventually(t, "it is accepted", func() bool { return b.Open() == 2 })
		cancel()
		require.ErrorIs(t, <-handled, context.Canceled)
		require.ErrorIs(t, <-served, context.Canceled)
		_, err := c.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err, "the connection is closed")

		ctx, cancel = context.WithCancel(background)
		defer cancel()
		go serve() // the Listener is still open
		c = must(a.Dial(background, "tcp", "10.0.0.2:80"))
		schedtest.Eventually(t, "it is accepted", func() bool { return b.Open() == 2 })
		must(0, ln.Close())
		must(c.Write([]byte("x")))
		require.NoError(t, <-handled)
		require.ErrorIs(t, <-served, net.ErrClosed)
		_, err = a.Dial(background, "tcp", "10.0.0.2:80")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// Shutdown stops a Serve, and waits for its handlers until its context ends.
func TestShutdown(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		a, b := stacks(t, netstack.Options{On: s}, netstack.WireOptions{})
		ln := must(b.Listen("tcp", ":80"))
		served := make(chan error, 2)
		serve := func() {
			served <- ln.Serve(background, func(_ context.Context, c net.Conn) { _, _ = c.Read(make([]byte, 1)) })
		}
		go serve()
		c := must(a.Dial(background, "tcp", "10.0.0.2:80"))
		schedtest.Eventually(t, "it is accepted", func() bool { return b.Open() == 2 })
		soon, cancel := context.WithTimeout(background, 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, ln.Shutdown(soon), context.DeadlineExceeded)
		serve() // after the Shutdown
		require.ErrorIs(t, <-served, net.ErrClosed)
		require.Empty(t, served, "a handler runs")
		ended := make(chan error, 1)
		go func() { ended <- ln.Shutdown(background) }()
		must(c.Write([]byte("x")))
		require.ErrorIs(t, <-ended, net.ErrClosed, "as a second Close")
		require.ErrorIs(t, <-served, net.ErrClosed)

		ln = must(b.Listen("tcp", ":81"))
		require.NoError(t, ln.Shutdown(background), "without a Serve")
		ln = must(b.Listen("tcp", ":82"))
		over, stop := context.WithCancel(background)
		stop()
		require.NoError(t, ln.Shutdown(over), "nothing is left")
	})
}

// Package crypto/tls runs unchanged in tasks of a loop.
func TestStockTLS(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	loop := must(eventloop.New(eventloop.Options{}))
	defer loop.Close()
	a, b := stacks(t, netstack.Options{On: loop}, netstack.WireOptions{})
	key := must(ecdsa.GenerateKey(elliptic.P256(), crand.Reader))
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	config := &tls.Config{Certificates: []tls.Certificate{{
		Certificate: [][]byte{must(x509.CreateCertificate(crand.Reader, c, c, &key.PublicKey, key))}, PrivateKey: key,
	}}}
	ln := must(b.Listen("tcp", ":443"))
	go ln.Serve(background, func(ctx context.Context, c net.Conn) { echo(ctx, tls.Server(c, config)) })
	var all sync.WaitGroup
	var good atomic.Int64
	for i := range 20 {
		all.Add(1)
		must(0, loop.Go(func() {
			defer all.Done()
			c := tls.Client(must(a.Dial(background, "tcp", "10.0.0.2:443")), &tls.Config{InsecureSkipVerify: true})
			defer c.Close()
			msg, got := content(uint64(i), 0, 8000), make([]byte, 8000)
			must(c.Write(msg))
			must(io.ReadFull(c, got))
			if bytes.Equal(got, msg) {
				good.Add(1)
			}
		}))
	}
	all.Wait()
	require.Equal(t, int64(20), good.Load())
}

// The options are applied to connections.
func TestOptions(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	a, b := stacks(t, netstack.Options{SendBuffer: 8192, ReceiveBuffer: 8192, SYNCookies: true}, netstack.WireOptions{})
	x, _ := pair(t, a, b)
	must(0, x.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	n, err := x.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Less(t, n, 1<<16, "the Write has filled the buffers of both ends")
	require.NotZero(t, n)
	must(0, x.SetNoDelay(false))
	must(0, x.SetKeepAlive(false))
}

// A Read that waits allocates nothing.
func TestAllocs(t *testing.T) {
	if schedtest.Race {
		t.Skip("the race detector allocates")
	}
	defer schedtest.Within(t, schedtest.Deadline)()
	a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
	_, y := pair(t, a, b)
	buf := make([]byte, 1)
	waits := testing.AllocsPerRun(100, func() {
		must(0, y.SetReadDeadline(time.Now().Add(100*time.Microsecond)))
		_, _ = y.Read(buf)
	})
	require.LessOrEqual(t, waits, 1.0, "the error")
}

package netstack_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/netstack"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

func TestMain(m *testing.M) { schedtest.Main(m) }

var background = context.Background()

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// stacks returns two stacks at the ends of a wire, 10.0.0.1 and 10.0.0.2.
func stacks(t testing.TB, o netstack.Options, wire netstack.WireOptions) (a, b *netstack.Stack) {
	t.Helper()
	x, y := netstack.Pair(wire)
	o.Link, o.Addresses = x, prefixes("10.0.0.1/24", "fd00::1/64")
	a = must(netstack.New(o))
	o.Link, o.Addresses = y, prefixes("10.0.0.2/24", "fd00::2/64")
	b = must(netstack.New(o))
	for _, s := range []*netstack.Stack{a, b} {
		if wire.Loss < 0.02 {
			break
		}
		soon := tcpip.TCPMinRTOOption(5 * time.Millisecond) // a lost packet is sent again sooner than on the internet
		require.Nil(t, s.Stack().SetTransportProtocolOption(tcp.ProtocolNumber, &soon))
		late := tcpip.TCPMaxRTOOption(50 * time.Millisecond)
		require.Nil(t, s.Stack().SetTransportProtocolOption(tcp.ProtocolNumber, &late))
	}
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a, b
}

func prefixes(texts ...string) (ps []netip.Prefix) {
	for _, text := range texts {
		ps = append(ps, netip.MustParsePrefix(text))
	}
	return ps
}

// pair returns the two ends of a connection.
func pair(t testing.TB, a, b *netstack.Stack) (x, y *netstack.Conn) {
	t.Helper()
	ln := must(b.Listen("tcp", "10.0.0.2:0"))
	defer ln.Close()
	x = must(a.Dial(background, "tcp", ln.Addr().String()))
	return x, must(ln.Accept()).(*netstack.Conn)
}

func echo(_ context.Context, c net.Conn) { _, _ = io.Copy(c, c) }

// tasked is a Conn whose I/O runs in tasks of a scheduler. Its callers are goroutines.
type tasked struct {
	*netstack.Conn
	on suspend.Spawner
}

func (c tasked) Read(p []byte) (n int, err error) {
	return c.do(func() (int, error) { return c.Conn.Read(p) })
}
func (c tasked) Write(p []byte) (n int, err error) {
	return c.do(func() (int, error) { return c.Conn.Write(p) })
}

func (c tasked) do(f func() (int, error)) (n int, err error) {
	done := make(chan struct{})
	if err := c.on.Go(func() { defer close(done); n, err = f() }); err != nil {
		return 0, err
	}
	<-done
	return n, err
}

// TestNettest runs the suite of golang.org/x/net, with the I/O in tasks of each scheduler, and on goroutines.
func TestNettest(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			a, b := stacks(t, netstack.Options{}, netstack.WireOptions{})
			x, y := pair(t, a, b)
			return tasked{x, s}, tasked{y, s}, func() { _, _, _, _ = x.Close(), y.Close(), a.Close(), b.Close() }, nil
		})
	})
}

// TestVersion checks that the version of gVisor in go.mod builds. Later versions of its main branch do not.
func TestVersion(t *testing.T) {
	text := string(must(os.ReadFile("go.mod")))
	require.Contains(t, text, "gvisor.dev/gvisor v0.0.0-20260905035102-160fafc42237\n")
	require.NotContains(t, text, "replace gvisor.dev")
}

// The wire loses, duplicates, delays and reorders packets. Both directions carry all bytes, in order.
func TestContents(t *testing.T) {
	for name, wire := range map[string]netstack.WireOptions{
		"loss of 10 %": {Loss: 0.1, Seed: 1},
		"reordered":    {Reorder: 0.2, Delay: time.Millisecond, Jitter: time.Millisecond, Seed: 2},
		"twice":        {Duplicate: 0.3, Seed: 3},
		"narrow":       {Bandwidth: 16 << 20, Delay: 2 * time.Millisecond, Seed: 4},
		"all of it":    {Loss: 0.02, Duplicate: 0.05, Reorder: 0.05, Delay: time.Millisecond, Bandwidth: 16 << 20, Seed: 5},
		"small MTU":    {MTU: 576},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer schedtest.Within(t, 2*schedtest.Deadline)()
			a, b := stacks(t, netstack.Options{}, wire)
			x, y := pair(t, a, b)
			size := 1 << 20
			if testing.Short() || wire.Loss > 0.05 { // each lost packet takes time
				size = 1 << 16
			}
			var all sync.WaitGroup
			send := func(c *netstack.Conn, seed uint64) {
				defer c.CloseWrite()
				rng := rand.New(rand.NewPCG(seed, 0))
				for sent := 0; sent < size; {
					n := min(size-sent, 1+rng.IntN(20000))
					must(c.Write(content(seed, sent, n)))
					sent += n
				}
			}
			receive := func(c *netstack.Conn, seed uint64) {
				h := sha256.New()
				n := must(io.Copy(h, c))
				want := sha256.Sum256(content(seed, 0, size))
				if int(n) != size || !bytes.Equal(h.Sum(nil), want[:]) {
					t.Errorf("%d bytes, not those that were sent", n)
				}
			}
			all.Go(func() { send(x, 1) })
			all.Go(func() { send(y, 2) })
			all.Go(func() { receive(x, 2) })
			all.Go(func() { receive(y, 1) })
			all.Wait()
		})
	}
}

// content returns a part of an endless stream.
func content(seed uint64, from, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		at := uint64(from + i)
		b[i] = byte((at*2654435761 + seed) >> 7)
	}
	return b
}

// A server and its 20 clients are tasks of one scheduler on one goroutine, and the wire loses 3 % of the packets.
func TestOneGoroutine(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	s := fifo.New(fifo.Options{})
	a, b := stacks(t, netstack.Options{On: s}, netstack.WireOptions{Loss: 0.03, Seed: 7})
	equal := 0
	err := s.Run(background, func(ctx context.Context) error {
		ln := must(b.Listen("tcp", "10.0.0.2:80"))
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		left := 20
		for i := range left {
			must(0, s.Go(func() {
				defer func() {
					if left--; left == 0 {
						stop()
					}
				}()
				c := must(a.Dial(ctx, "tcp", "10.0.0.2:80"))
				defer c.Close()
				for round := range 5 {
					msg := content(uint64(i), round, 5000)
					must(c.Write(msg))
					got := make([]byte, len(msg))
					must(io.ReadFull(c, got))
					if bytes.Equal(got, msg) {
						equal++
					}
				}
			}))
		}
		return ln.Serve(ctx, echo)
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 100, equal)
}

// Connections are opened and closed, and leave no endpoint and no goroutine behind.
func TestNothingIsLeft(t *testing.T) {
	conns := 10000
	if testing.Short() || schedtest.Race {
		conns = 500
	}
	defer schedtest.Within(t, 3*schedtest.Deadline)()
	loop := must(eventloop.New(eventloop.Options{}))
	defer loop.Close()
	a, b := stacks(t, netstack.Options{On: loop}, netstack.WireOptions{})
	for _, s := range []*netstack.Stack{a, b} {
		soon := tcpip.TCPTimeWaitTimeoutOption(100 * time.Millisecond)
		require.Nil(t, s.Stack().SetTransportProtocolOption(tcp.ProtocolNumber, &soon))
	}
	before := schedtest.Goroutines()
	ln := must(b.Listen("tcp", ":80"))
	ctx, stop := context.WithCancel(background)
	served := make(chan error, 1)
	go func() { served <- ln.Serve(ctx, echo) }()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			buf := make([]byte, 4)
			for i := range conns / 8 {
				c := must(a.Dial(ctx, "tcp", "10.0.0.2:80"))
				if i%3 > 0 {
					must(c.Write([]byte("ping")))
					must(io.ReadFull(c, buf))
				}
				if i%3 == 2 {
					must(0, c.SetLinger(0))
				}
				must(0, c.Close())
			}
		})
	}
	all.Wait()
	stop()
	require.ErrorIs(t, <-served, context.Canceled)
	must(0, ln.Close())
	for name, s := range map[string]*netstack.Stack{"a": a, "b": b} {
		schedtest.Eventually(t, "no endpoint of "+name, func() bool {
			return len(s.Stack().RegisteredEndpoints())+len(s.Stack().CleanupEndpoints()) == 0
		})
		require.Zero(t, s.Open(), name)
	}
	schedtest.Eventually(t, "no goroutine", func() bool { return schedtest.Goroutines() <= before })
}

// A connection needs no goroutine. There are only those of the two stacks, one that accepts, and the loop.
func TestNoGoroutinePerConnection(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	loop := must(eventloop.New(eventloop.Options{}))
	defer loop.Close()
	before := schedtest.Goroutines()
	a, b := stacks(t, netstack.Options{On: loop}, netstack.WireOptions{})
	ln := must(b.Listen("tcp", ":80"))
	ctx, stop := context.WithCancel(background)
	served := make(chan error, 1)
	go func() { served <- ln.Serve(ctx, echo) }()
	var conns []*netstack.Conn
	n := 1000
	if schedtest.Race {
		n = 100
	}
	for range n {
		c := must(a.Dial(background, "tcp", "10.0.0.2:80"))
		must(c.Write([]byte("x")))
		conns = append(conns, c)
	}
	for _, c := range conns {
		must(io.ReadFull(c, make([]byte, 1)))
	}
	// each handler is a coroutine of the loop, which the runtime counts as a goroutine
	more := schedtest.Goroutines() - before - len(conns)
	if limit := 2*runtime.GOMAXPROCS(0) + 4; more > limit {
		t.Errorf("%d goroutines more, besides those of the tasks; %d are allowed", more, limit)
	}
	stop()
	<-served
}

// Close of a Stack ends every kind of wait, on every scheduler.
func TestStackClose(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		a, b := stacks(t, small, netstack.WireOptions{})
		full, idle := must(b.Listen("tcp", ":1")), must(b.Listen("tcp", ":2"))
		defer full.Close()
		tasks := 100
		if schedtest.Race {
			tasks = 20
		}
		big := make([]byte, 1<<20)
		errs := make(chan error, 10*tasks)
		var begun atomic.Int64
		do := func(n int, f func() error) {
			for range n {
				must(0, s.Go(func() { begun.Add(1); errs <- f() }))
			}
		}
		kinds := 0
		kind := func(f func() error) { kinds++; do(tasks, f) }
		x, _ := pair(t, a, b)
		kind(func() error { _, err := x.Read(make([]byte, 1)); return err })
		kind(func() error { _, err := x.Write(big); return err })
		kind(func() error { _, err := idle.Accept(); return err })
		kind(func() error { // each wait has its own connection
			c, err := a.Dial(background, "tcp", "10.0.0.2:1")
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			return err
		})
		kind(func() error { _, err := a.Dial(background, "tcp", "10.0.0.77:1"); return err }) // no stack has this address
		kind(func() error {
			if _, err := suspend.Do(background, x.ReadableOp()); err != nil {
				return err
			}
			_, err := x.Read(make([]byte, 1))
			return err
		})
		schedtest.Eventually(t, "all have begun", func() bool { return begun.Load() == int64(kinds*tasks) })
		must(0, a.Close())
		must(0, b.Close())
		for range kinds * tasks {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Fatal(err)
			}
		}
		require.ErrorIs(t, a.Close(), net.ErrClosed)
		_, err := a.Dial(background, "tcp", "10.0.0.2:1")
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = b.Listen("tcp", ":3")
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

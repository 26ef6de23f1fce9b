package simulation_test

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// In slow, each segment takes a tenth of a second.
var slow = simulation.Faults{MinLatency: 100 * time.Millisecond, MaxLatency: 100 * time.Millisecond}

// A Cut ends a Dial while its request is under way, while the response is, and while the request is held.
func TestADialUnderWayAtACut(t *testing.T) {
	for name, at := range map[string]time.Duration{"request": 50, "answer": 150, "held": 250} {
		t.Run(name, func(t *testing.T) {
			run(t, func(ctx context.Context, w *simulation.World) error {
				w.SetFaults(slow)
				a, link := w.Node("a"), w.Link("a", "b")
				ln, err := w.Node("b").Listen("tcp", ":80")
				require.NoError(t, err)
				accepted := 0
				spawn(w, func() {
					c, err := ln.Accept()
					if err == nil {
						accepted++
						_, err = c.Read(make([]byte, 1))
						require.ErrorIs(t, err, syscall.ECONNRESET)
					}
				})
				if name == "held" {
					link.Hold()
				}
				w.AfterFunc(at*time.Millisecond, link.Cut)
				w.AfterFunc(time.Second, link.Cut) // link is already cut
				begin := suspend.Now()
				_, err = a.Dial(ctx, "tcp", "b:80")
				require.ErrorIs(t, err, syscall.EHOSTUNREACH)
				require.Equal(t, at*time.Millisecond+3*time.Second, suspend.Now().Sub(begin))
				_ = suspend.Sleep(ctx, time.Second)
				require.Equal(t, name == "answer", accepted == 1)
				link.Heal()
				_, err = a.Dial(ctx, "tcp", "b:80")
				return err
			})
		})
	}
}

// A Dial has received its response and has not returned yet when the link is cut. Its connection is broken.
func TestACutBreaksAConnectionThatDialHasNotReturned(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(slow)
		a := w.Node("a")
		listen(w.Node("b"))
		var dialled net.Conn
		_ = a.Go(func() { dialled, _ = a.Dial(ctx, "tcp", "b:80") })
		_ = suspend.Sleep(ctx, 150*time.Millisecond)
		a.Pause() // so that the response comes before the task continues
		_ = suspend.Sleep(ctx, time.Second)
		w.Link("a", "b").Cut()
		a.Resume()
		_ = suspend.Sleep(ctx, time.Second)
		require.NotNil(t, dialled)
		_, err := dialled.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return nil
	})
}

func listen(n *simulation.Node) net.Listener {
	ln, err := n.Listen("tcp", ":80")
	if err != nil {
		panic(err)
	}
	return ln
}

// A task of the World calls Dial, and its node begins a second life meanwhile.
func TestADialOfTheFirstLifeHasNoConnectionInTheSecond(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(slow)
		a, ln := w.Node("a"), listen(w.Node("b"))
		w.AfterFunc(50*time.Millisecond, func() { a.Restart(func(context.Context) {}) })
		_, err := a.Dial(ctx, "tcp", "b:80")
		require.ErrorIs(t, err, net.ErrClosed)
		c, err := ln.Accept()
		require.NoError(t, err)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return nil
	})
}

// After CloseRead, bytes that arrive break both ends, so that neither waits for room that never comes.
func TestCloseReadBreaksBothEnds(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		require.NoError(t, b.CloseRead())
		_, err := a.Write([]byte("x"))
		require.NoError(t, err)
		_ = suspend.Sleep(ctx, time.Minute)
		_, err = b.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = a.Write([]byte("x"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = b.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

func TestCloseReadDoesNotLeaveAWriterWithoutRoom(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		_ = w.Go(func() { _ = suspend.Sleep(ctx, time.Minute); _ = b.CloseRead() })
		n, err := a.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.GreaterOrEqual(t, n, 64<<10)
	})
}

// If they are held, the end of a direction and the notice of room break the connection, as bytes do.
func TestHeldNewsEndsAConnection(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, _ := pair(ctx, w)
		w.Link("a", "b").Hold()
		begin := suspend.Now()
		require.NoError(t, a.CloseWrite())
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, 15*time.Minute, suspend.Now().Sub(begin))
		w.Heal()

		a, b := pair(ctx, w)
		_ = w.Go(func() {
			_ = suspend.Sleep(ctx, time.Minute)
			w.Link("a", "b").Hold()
			_, _ = io.Copy(io.Discard, b)
		})
		_, err = a.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
	})
}

// A connection that has ended does not keep the World awake.
func TestAHeldResetSetsNoTimer(t *testing.T) {
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		a, _ := pair(ctx, w)
		w.Link("a", "b").Hold()
		_, _ = a.Write([]byte("x"))
		waitForever()
		return nil
	}, simulation.Options{Seed: 1})
	require.ErrorIs(t, r.Err, simulation.ErrDeadlock)
	require.Less(t, r.Elapsed, 16*time.Minute)
}

// The latencies have more nanoseconds than an int of 32 bits can hold.
func TestLongLatencies(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := pair(ctx, w)
		w.SetFaults(simulation.Faults{MinLatency: 2 * time.Second, MaxLatency: 9 * time.Second})
		least, most := time.Hour, time.Duration(0)
		for range 200 {
			begin := suspend.Now()
			_, err := a.Write([]byte("x"))
			require.NoError(t, err)
			_, err = io.ReadFull(b, make([]byte, 1))
			require.NoError(t, err)
			took := suspend.Now().Sub(begin)
			least, most = min(least, took), max(most, took)
			_ = suspend.Sleep(ctx, time.Minute)
		}
		require.GreaterOrEqual(t, least, 2*time.Second)
		require.LessOrEqual(t, most, 9*time.Second)
		require.Greater(t, most-least, 6*time.Second)
		return nil
	})
}

// In a bubble, a native sleep within a step takes time. A segment is sent at the time after the sleep, so that no later segment
// overtakes it.
func TestANativeSleepLetsNoSegmentOvertake(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				a, b := pair(ctx, w)
				w.SetFaults(simulation.Faults{MaxLatency: time.Second})
				for i := range 10 {
					if i%2 == 0 {
						time.Sleep(time.Second)
					}
					must(a.Write([]byte{byte(i)}))
				}
				got := make([]byte, 10)
				must(io.ReadFull(b, got))
				require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, got)
				return nil
			}, simulation.Options{Seed: seed + 1, Bubble: true})
			require.NoError(t, r.Err)
		})
	}
}

// A node has an IP address besides its loopback addresses. Each may have a listener on the same port.
func TestAddresses(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		a, b := w.Node("a"), w.Node("b")
		named := w.Node("10.1.2.3")
		accepted := ""
		listen := func(n *simulation.Node, address string) {
			l, err := n.Listen("tcp", address)
			require.NoError(t, err)
			_ = n.Go(func() {
				for {
					if _, err := l.Accept(); err != nil {
						return
					}
					accepted = address
				}
			})
		}
		listen(a, "10.0.0.1:80")
		listen(a, "localhost:80")
		listen(named, ":80")
		for _, address := range []string{":80", "10.0.0.1:80", "127.0.0.1:80"} {
			_, err := a.Listen("tcp", address)
			require.ErrorIs(t, err, syscall.EADDRINUSE, address)
		}
		_, err := a.Listen("tcp", "10.0.0.2:80")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		for _, d := range []struct {
			from        *simulation.Node
			address, at string
		}{
			{b, "10.0.0.1:80", "10.0.0.1:80"}, {b, "a:80", "10.0.0.1:80"}, {a, "10.0.0.1:80", "10.0.0.1:80"},
			{a, "127.0.0.1:80", "localhost:80"}, {a, "localhost:80", "localhost:80"}, {a, "10.1.2.3:80", ":80"},
		} {
			accepted = ""
			_, err := d.from.Dial(ctx, "tcp", d.address)
			require.NoError(t, err, d.address)
			_ = suspend.Sleep(ctx, time.Second)
			require.Equal(t, d.at, accepted, d.address)
		}
		var unknown *net.DNSError
		_, err = b.Dial(ctx, "tcp", "10.0.0.9:80")
		require.ErrorAs(t, err, &unknown)
		return nil
	})
}

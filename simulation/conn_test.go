package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// These are the tests of eventloop's Conn, in tasks of a World.

// halves has the methods that a TCP connection has in addition to net.Conn.
type halves interface {
	net.Conn
	CloseWrite() error
	CloseRead() error
}

// pair connects the nodes a and b.
func pair(ctx context.Context, w *simulation.World) (a, b halves) {
	ln, err := w.Node("b").Listen("tcp", ":0")
	if err != nil {
		panic(err)
	}
	defer ln.Close()
	dialled := make(chan struct{}, 1)
	var e error
	var c net.Conn
	spawn(w, func() { c, e = w.Node("a").Dial(ctx, "tcp", ln.Addr().String()); dialled <- struct{}{} })
	d, err := ln.Accept()
	if err != nil {
		panic(err)
	}
	for len(dialled) == 0 {
		_ = suspend.Sleep(ctx, time.Millisecond)
	}
	if e != nil {
		panic(e)
	}
	return c.(halves), d.(halves)
}

func spawn(w *simulation.World, f func()) {
	if err := w.Go(f); err != nil {
		panic(err)
	}
}

// eachSeed runs main with several seeds, on two kinds of networks.
func eachSeed(t *testing.T, main func(ctx context.Context, t *testing.T, w *simulation.World)) {
	t.Helper()
	for _, faults := range []simulation.Faults{{}, {MinLatency: time.Millisecond, MaxLatency: 20 * time.Millisecond, Bandwidth: 1 << 20}} {
		simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
			w.SetFaults(faults)
			main(ctx, t, w)
			return nil
		}, simulation.TestOptions{Seeds: 20, Options: simulation.Options{MaxTime: 24 * time.Hour}})
	}
}

func TestDeadlines(t *testing.T) {
	big := make([]byte, 1<<20)
	for name, dir := range map[string]struct {
		set func(net.Conn, time.Time) error
		do  func(net.Conn) error
	}{
		"read":  {net.Conn.SetReadDeadline, func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
		"write": {net.Conn.SetWriteDeadline, func(c net.Conn) error { _, err := c.Write(big); return err }},
		"both":  {net.Conn.SetDeadline, func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
				a, _ := pair(ctx, w)
				// after returns how long an operation with a timeout takes if change is called a second later.
				after := func(first time.Duration, change func()) time.Duration {
					begin := suspend.Now()
					require.NoError(t, dir.set(a, begin.Add(first)))
					if change != nil {
						spawn(w, func() { _ = suspend.Sleep(ctx, time.Second); change() })
					}
					err := dir.do(a)
					var ne net.Error
					require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					require.True(t, errors.As(err, &ne) && ne.Timeout())
					return suspend.Now().Sub(begin)
				}
				require.Equal(t, time.Duration(0), after(-time.Second, nil))
				require.Equal(t, 2*time.Second, after(2*time.Second, nil))
				require.Equal(t, time.Second, after(time.Minute, func() { require.NoError(t, dir.set(a, suspend.Now())) }))
				require.Equal(t, time.Second+time.Minute, after(2*time.Second, func() {
					require.NoError(t, dir.set(a, suspend.Now().Add(time.Minute)))
				}))
				spawn(w, func() { _ = suspend.Sleep(ctx, time.Hour); _ = a.Close() })
				require.NoError(t, dir.set(a, suspend.Now().Add(time.Second)))
				spawn(w, func() { require.NoError(t, dir.set(a, time.Time{})) })
				require.ErrorIs(t, dir.do(a), net.ErrClosed) // and not before the hour is over
			})
		})
	}
}

// Stock code makes deadlines with time.Now. The World uses the time that is left until the deadline.
func TestADeadlineOfRealTime(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, 300 * time.Millisecond, 5 * time.Second, time.Hour} {
		run(t, func(ctx context.Context, w *simulation.World) error {
			a, _ := pair(ctx, w)
			begin := suspend.Now()
			require.NoError(t, a.SetDeadline(time.Now().Add(d)))
			_, err := a.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, max(d, 0), suspend.Now().Sub(begin))
			return nil
		})
	}
}

func TestCloseWakes(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, _ := pair(ctx, w)
		ln, err := w.Node("a").Listen("tcp", ":80")
		require.NoError(t, err)
		ops := []func() error{
			func() error { _, err := a.Read(make([]byte, 1)); return err },
			func() error { _, err := a.Read(make([]byte, 1)); return err }, // waits behind another Read
			func() error { _, err := a.Write(make([]byte, 1<<20)); return err },
			func() error { _, err := ln.Accept(); return err },
		}
		ended := 0
		for _, op := range ops {
			spawn(w, func() { require.ErrorIs(t, op(), net.ErrClosed); ended++ })
		}
		_ = suspend.Sleep(ctx, time.Minute)
		require.Zero(t, ended)
		require.NoError(t, a.Close())
		require.NoError(t, ln.Close())
		for range len(ops) + 1 {
			suspend.Yield()
		}
		_ = suspend.Sleep(ctx, 1)
		require.Equal(t, len(ops), ended)
		for _, op := range ops {
			require.ErrorIs(t, op(), net.ErrClosed)
		}
		for _, err := range []error{a.Close(), ln.Close(), a.SetDeadline(suspend.Now()), a.CloseWrite(), a.CloseRead()} {
			require.ErrorIs(t, err, net.ErrClosed)
		}
	})
}

// The messages of each writer stay whole and in order. Every byte is read once.
func TestConcurrentReadsAndWrites(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		const writers, readers, messages, size = 4, 4, 5, 10000
		wrote, read := 0, 0
		for i := range writers {
			spawn(w, func() {
				for range messages {
					_, err := a.Write(bytes.Repeat([]byte{byte('a' + i)}, size))
					require.NoError(t, err)
				}
				if wrote++; wrote == writers {
					require.NoError(t, a.CloseWrite())
				}
			})
		}
		var all []byte
		for range readers {
			spawn(w, func() {
				buf := make([]byte, 5000)
				for {
					n, err := b.Read(buf)
					if all = append(all, buf[:n]...); err != nil {
						require.Equal(t, io.EOF, err)
						read++
						return
					}
				}
			})
		}
		for read < readers {
			_ = suspend.Sleep(ctx, time.Second)
		}
		require.Len(t, all, writers*messages*size)
		for ; len(all) > 0; all = all[size:] { // with several readers, only the bytes of one step are in order
			require.Equal(t, size, bytes.Count(all[:size], all[:1]), "torn")
		}
	})
}

// A Write without room suspends, and no other Write gets in between.
func TestWritesAreWholeAndSuspend(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		const writers, size = 3, 300 << 10
		wrote := 0
		for i := range writers {
			spawn(w, func() {
				n, err := a.Write(bytes.Repeat([]byte{byte(i)}, size))
				require.NoError(t, err)
				require.Equal(t, size, n)
				wrote++
			})
		}
		_ = suspend.Sleep(ctx, time.Hour)
		require.Zero(t, wrote, "a slow reader holds the writers up")
		for range writers {
			got := make([]byte, size)
			_, err := io.ReadFull(b, got)
			require.NoError(t, err)
			require.Equal(t, size, bytes.Count(got, got[:1]), "torn")
		}
	})
}

func TestHalfClose(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		_, err := a.Write([]byte("question"))
		require.NoError(t, err)
		require.NoError(t, a.CloseWrite())
		_, err = a.Write([]byte("more"))
		require.ErrorIs(t, err, syscall.EPIPE)
		q, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, "question", string(q))
		_, err = b.Write([]byte("answer"))
		require.NoError(t, err)
		require.NoError(t, b.Close())
		r, err := io.ReadAll(a)
		require.NoError(t, err)
		require.Equal(t, "answer", string(r))
		n, err := a.Read(make([]byte, 1))
		require.Equal(t, 0, n)
		require.Equal(t, io.EOF, err)
	})
}

// A Close with unread bytes resets the peer, as in TCP. So does a Write to a closed Conn.
func TestCloseResets(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		_, err := a.Write([]byte("unread"))
		require.NoError(t, err)
		_ = suspend.Sleep(ctx, time.Second)
		require.NoError(t, b.Close())
		_, err = a.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)

		a, b = pair(ctx, w)
		require.NoError(t, b.Close())
		_, err = a.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
		_, err = a.Write([]byte("late"))
		require.NoError(t, err)
		_ = suspend.Sleep(ctx, time.Second)
		_, err = a.Write([]byte("later"))
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

func TestDialFails(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a := w.Node("a")
		w.Node("b")
		dial := func(ctx context.Context, address string) error { _, err := a.Dial(ctx, "tcp", address); return err }
		require.ErrorIs(t, dial(ctx, "b:80"), syscall.ECONNREFUSED)
		require.ErrorContains(t, dial(ctx, "c:80"), "no such node")
		require.ErrorContains(t, dial(ctx, "b"), "missing port")
		require.ErrorContains(t, dial(ctx, "b:http"), "invalid port")
		_, err := a.Dial(ctx, "udp", "b:80")
		require.ErrorContains(t, err, "unknown network")
		done, end := context.WithCancel(ctx)
		end()
		require.ErrorIs(t, dial(done, "b:80"), context.Canceled)
		ln, err := a.Listen("tcp", "a:80")
		require.NoError(t, err)
		require.Equal(t, "a:80", ln.Addr().String())
		_, err = a.Listen("tcp", ":80")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = a.Listen("tcp", "b:81")
		require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
		for i, name := range []string{"0.0.0.0", "[::]", "localhost", "127.0.0.1", "[::1]"} {
			port := strconv.Itoa(90 + i)
			_, err = a.Listen("tcp", name+":"+port)
			require.NoError(t, err)
			require.NoError(t, dial(ctx, name+":"+port))
			require.NoError(t, dial(ctx, "a:"+port))
			c, err := w.Node("b").Dial(ctx, "tcp", "a:"+port)
			require.Equal(t, i < 2, c != nil, "%s: %v", name, err)
		}
		w.SetFaults(simulation.Faults{Refuse: 1})
		require.ErrorIs(t, dial(ctx, "a:80"), syscall.ECONNREFUSED)
	})
}

// A caller that always tries again at once, after any error, does not stop the World: the run reaches a limit, or ends with main.
func TestACallerThatTriesAgain(t *testing.T) {
	again := func(ctx context.Context, w *simulation.World) error {
		for {
			if _, err := w.Node("a").Dial(ctx, "tcp", "b:1"); err == nil {
				return nil
			}
		}
	}
	failing(t, simulation.Options{MaxSteps: 1000}, simulation.ErrSteps, again)
	failing(t, simulation.Options{MaxSteps: 1000}, simulation.ErrSteps, func(ctx context.Context, w *simulation.World) error {
		w.Node("a").Crash()
		return again(ctx, w)
	})
	failing(t, simulation.Options{MaxTime: time.Hour}, simulation.ErrTime, func(ctx context.Context, w *simulation.World) error {
		w.Node("b")
		w.Link("a", "b").Cut()
		return again(ctx, w)
	})
	boom := errors.New("boom")
	failing(t, simulation.Options{}, boom, func(ctx context.Context, w *simulation.World) error {
		ln, err := w.Node("a").Listen("tcp", ":1")
		require.NoError(t, err)
		w.Always(func() error { return boom })
		_ = ln.Close()
		for {
			_, _ = ln.Accept()
		}
	})
}

// Segments of one connection arrive in order. Segments of other connections may overtake them.
func TestOrderAndOvertaking(t *testing.T) {
	overtaken := 0
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: time.Second})
		a, b := pair(ctx, w)
		c, d := pair(ctx, w)
		var arrived []byte
		for i, conn := range []net.Conn{b, d} {
			spawn(w, func() {
				for n := 0; ; n++ {
					buf := make([]byte, 1)
					_, err := conn.Read(buf)
					require.NoError(t, err)
					require.Equal(t, byte(n), buf[0])
					arrived = append(arrived, byte(i))
				}
			})
		}
		for n := range 20 {
			_, _ = a.Write([]byte{byte(n)})
			_, _ = c.Write([]byte{byte(n)})
		}
		_ = suspend.Sleep(ctx, time.Hour)
		require.Len(t, arrived, 40)
		if arrived[0] == 1 {
			overtaken++
		}
	})
	require.Greater(t, overtaken, 5)
	require.Less(t, overtaken, 35)
}

func TestLatencyAndBandwidth(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Second, MaxLatency: time.Second, Bandwidth: 1000})
		a, b := pair(ctx, w)
		begin := suspend.Now()
		_, err := a.Write(make([]byte, 5000))
		require.NoError(t, err)
		_, err = io.ReadFull(b, make([]byte, 5000))
		require.NoError(t, err)
		require.Equal(t, 6*time.Second, suspend.Now().Sub(begin).Round(time.Millisecond))
		w.Link("b", "a").SetFaults(simulation.Faults{})
		begin = suspend.Now()
		_, _ = a.Write(make([]byte, 5000))
		_, _ = io.ReadFull(b, make([]byte, 5000))
		require.Zero(t, suspend.Now().Sub(begin))
		return nil
	})
}

func TestReset(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		_, err := b.Write([]byte("lost"))
		require.NoError(t, err)
		_ = suspend.Sleep(ctx, time.Second)
		w.SetFaults(simulation.Faults{Reset: 1})
		_, _ = a.Write([]byte("x"))
		for _, c := range []net.Conn{a, b} {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
			_, err = c.Write([]byte("x"))
			require.ErrorIs(t, err, syscall.ECONNRESET)
			require.NoError(t, c.Close())
		}
	})
}

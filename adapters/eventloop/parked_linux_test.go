//go:build !braid_portable

package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/processor"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// serveParked calls ServeParked until the test ends, and sends its result to served.
func serveParked(t *testing.T, l *eventloop.Loop, network string, ctx context.Context, serve func(context.Context, net.Conn) error) (ln *eventloop.Listener, served chan error) {
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln = must(l.Listen(network, address))
	served = make(chan error, 1)
	go func() { served <- ln.ServeParked(ctx, serve) }()
	t.Cleanup(func() { _ = ln.Close() })
	return ln, served
}

// echoOnce answers one Read.
func echoOnce(_ context.Context, c net.Conn) error {
	var b [64]byte
	n, err := c.Read(b[:])
	if err != nil {
		return err
	}
	_, err = c.Write(b[:n])
	return err
}

func connect(t testing.TB, ln net.Listener) net.Conn {
	c := must(net.Dial(ln.Addr().Network(), ln.Addr().String()))
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func asks(t testing.TB, c net.Conn, text string) {
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	b := make([]byte, len(text))
	_, err = io.ReadFull(c, b)
	require.NoError(t, err)
	require.Equal(t, text, string(b))
}

func TestAParkedConnectionHasNoTask(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: 2})
			before := runtime.NumGoroutine()
			ln, served := serveParked(t, l, network, t.Context(), echoOnce)
			conns := make([]net.Conn, 50)
			for i := range conns {
				conns[i] = connect(t, ln)
			}
			for range 3 {
				for i, c := range conns {
					asks(t, c, fmt.Sprint("hello ", i))
				}
			}
			// Two tasks accept, and the reactors keep coroutines for the next tasks.
			require.LessOrEqual(t, runtime.NumGoroutine(), before+12, "a parked connection has a task")
			within(t, func() { require.NoError(t, ln.Shutdown(context.Background())) }) // parked connections do not delay Shutdown
			for _, c := range conns {
				_, err := c.Read(make([]byte, 1))
				require.Error(t, err)
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			}
			require.ErrorIs(t, <-served, net.ErrClosed)
			schedtest.Eventually(t, "the tasks that accepted have ended", func() bool { return l.Stats().Live == 0 })
		})
	}
}

// TestServeParkedReadsOn reads only a part of the data. The rest must be served although no further event comes.
func TestServeParkedReadsOn(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln, _ := serveParked(t, l, "tcp", t.Context(), func(_ context.Context, c net.Conn) error {
		var b [1]byte
		if _, err := c.Read(b[:]); err != nil {
			return err
		}
		_, err := c.Write(b[:])
		return err
	})
	c := connect(t, ln)
	asks(t, c, "all of this")
	asks(t, c, "and this")
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	_, err := c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the function is called for the end of the peer's bytes")
}

func TestADeadlineOfAParkedConnection(t *testing.T) {
	l := open(t, eventloop.Options{})
	failed := make(chan error, 1)
	ln, _ := serveParked(t, l, "tcp", t.Context(), func(ctx context.Context, c net.Conn) error {
		if err := echoOnce(ctx, c); err != nil {
			failed <- err
			return err
		}
		return c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	})
	c := connect(t, ln)
	asks(t, c, "a")
	began := time.Now()
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
	require.Greater(t, time.Since(began), 25*time.Millisecond)
}

// TestTheIdleTimeoutOfParkedConnections has one client that never sends, and one that stays longer than the timeout, with a pause
// of its function between two Reads.
func TestTheIdleTimeoutOfParkedConnections(t *testing.T) {
	const idle = 500 * time.Millisecond // even a busy machine must need less time than this from the accept to the first byte
	l := open(t, eventloop.Options{IdleTimeout: idle})
	var calls atomic.Int32
	ln, _ := serveParked(t, l, "tcp", t.Context(), func(ctx context.Context, c net.Conn) error {
		calls.Add(1)
		return errors.Join(echoOnce(ctx, c), echoOnce(ctx, c))
	})
	ended := func(c net.Conn) {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection stays")
	}
	began := time.Now()
	ended(connect(t, ln))
	require.GreaterOrEqual(t, time.Since(began), idle)
	require.Zero(t, calls.Load(), "the function is called for a connection without a byte")
	c := connect(t, ln)
	asks(t, c, "a")
	time.Sleep(2 * idle) // the client's time, while the function waits for it
	began = time.Now()
	asks(t, c, "b")
	ended(c)
	require.GreaterOrEqual(t, time.Since(began), idle*9/10)
	require.EqualValues(t, 1, calls.Load())
}

func TestServeParkedEnds(t *testing.T) {
	for name, end := range map[string]func(l *eventloop.Loop, ln *eventloop.Listener, cancel func()){
		"context":  func(_ *eventloop.Loop, _ *eventloop.Listener, cancel func()) { cancel() },
		"listener": func(_ *eventloop.Loop, ln *eventloop.Listener, _ func()) { _ = ln.Close() },
		"loop":     func(l *eventloop.Loop, _ *eventloop.Listener, _ func()) { go l.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: 2})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			begun, finish := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() { close(finish) })
			defer release() // otherwise a test that has failed would not end
			ln, served := serveParked(t, l, "tcp", ctx, func(ctx context.Context, c net.Conn) error {
				var b [1]byte
				if _, err := c.Read(b[:]); err != nil {
					return err
				}
				if b[0] == 's' {
					close(begun)
					_ = suspend.Blocking(context.Background(), func() { <-finish })
					return nil // parks, unless ServeParked has ended
				}
				_, err := c.Write(b[:])
				return err
			})
			idle, slow := connect(t, ln), connect(t, ln)
			asks(t, idle, "i") // otherwise it may not yet be accepted, and a context that is done does not close what waits in the backlog
			_, _ = io.WriteString(slow, "s")
			<-begun
			end(l, ln, cancel)
			_, err := idle.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "a parked connection is closed at once")
			select {
			case err := <-served:
				require.Fail(t, "ServeParked has not waited for a call", err)
			case <-time.After(20 * time.Millisecond):
			}
			release()
			within(t, func() { err = <-served })
			if name == "context" {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorIs(t, err, net.ErrClosed)
			}
			_, err = slow.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		})
	}
}

func TestAServeThatPanics(t *testing.T) {
	panics := make(chan any, 1)
	l := open(t, eventloop.Options{OnPanic: func(v any, _ []byte) { panics <- v }})
	ln, _ := serveParked(t, l, "tcp", t.Context(), func(ctx context.Context, c net.Conn) error {
		_ = echoOnce(ctx, c)
		panic("no")
	})
	c := connect(t, ln)
	asks(t, c, "a")
	require.Equal(t, "no", <-panics)
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	within(t, func() { require.NoError(t, ln.Shutdown(context.Background())) })
}

// TestACloseOfTheLoopCallsNothing closes a Loop with many parked connections. None of their functions may run outside the Loop.
func TestACloseOfTheLoopCallsNothing(t *testing.T) {
	for range 5 {
		l := open(t, eventloop.Options{Loops: 2})
		var outside atomic.Int32
		ln, served := serveParked(t, l, "tcp", t.Context(), func(ctx context.Context, c net.Conn) error {
			if !suspend.Within(l) {
				outside.Add(1)
			}
			return echoOnce(ctx, c)
		})
		for range 20 {
			asks(t, connect(t, ln), "a")
		}
		within(t, func() { _ = l.Close() })
		require.ErrorIs(t, <-served, net.ErrClosed)
		require.Zero(t, outside.Load(), "a function runs outside of the Loop")
	}
}

// TestParkedConnectionsLoseNothing has clients that send and pause at random, and counts every byte.
func TestParkedConnectionsLoseNothing(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	var received atomic.Int64
	ln, served := serveParked(t, l, "tcp", t.Context(), func(ctx context.Context, c net.Conn) error {
		var b [7]byte
		n, err := c.Read(b[:])
		received.Add(int64(n))
		if err == nil && n%2 == 0 {
			suspend.Yield()
		}
		return err
	})
	var sent atomic.Int64
	var wg sync.WaitGroup
	clients := 200
	if testing.Short() {
		clients = 40
	}
	for i := range clients {
		wg.Go(func() {
			c, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for k := range 20 {
				n, _ := c.Write(make([]byte, 1+(i*7+k*3)%23))
				sent.Add(int64(n))
				if (i+k)%4 == 0 {
					time.Sleep(time.Duration((i*k)%5) * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return received.Load() == sent.Load() }, 20*time.Second, time.Millisecond)
	within(t, func() { require.NoError(t, ln.Shutdown(context.Background())) })
	if err := <-served; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// Connections are parked, and the client closes them: in the middle of a message, after an answer, or before the first byte.
func TestConnectsAndParksLeaveNothing(t *testing.T) {
	const n = 250
	leavesNothing(t, func() {
		l := must(eventloop.New(eventloop.Options{Loops: 2, StallAfter: -1}))
		ln, served := serveParked(t, l, "tcp", bg, echoOnce)
		all := make([]net.Conn, n)
		for range endures(100_000) / n {
			for i := range all {
				all[i] = must(net.Dial("tcp", ln.Addr().String()))
				if i%4 != 0 {
					asks(t, all[i], "a")
				}
			}
			for i, c := range all {
				if i%8 == 0 {
					must(c.Write([]byte("b")))
				}
				must(0, c.(*net.TCPConn).SetLinger(0)) // frees the port at once; otherwise the ports run out
				c.Close()
			}
		}
		must(0, ln.Shutdown(bg))
		<-served
		must(0, l.Close())
	})
}

// TestShutdownOfManyParkedConnections measures processor time, because the machine may be busy.
func TestShutdownOfManyParkedConnections(t *testing.T) {
	var limit syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := int(min(uint64(endures(20_000)), limit.Cur/2-50))
	leavesNothing(t, func() {
		l := must(eventloop.New(eventloop.Options{Loops: 2, StallAfter: -1}))
		ln, served := serveParked(t, l, "tcp", bg, echoOnce)
		all := make([]net.Conn, n)
		for i := range all {
			all[i] = must(net.Dial("tcp", ln.Addr().String()))
			asks(t, all[i], "a")
		}
		began := processor.Used()
		must(0, ln.Shutdown(bg))
		took := processor.Used() - began
		t.Log(n, "parked connections are closed in", took)
		if !schedtest.Race {
			require.Less(t, took, time.Second)
		}
		require.ErrorIs(t, <-served, net.ErrClosed)
		for _, c := range all {
			_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, err := c.Read(make([]byte, 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			c.Close()
		}
		must(0, l.Close())
	})
}

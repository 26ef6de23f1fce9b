package simulation_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// crowd starts ten waiting tasks of n. It returns how many have ended, and how many have continued.
func crowd(n *simulation.Node) (ended, went *int) {
	ended, went = new(int), new(int)
	var empty mvar.MVar[int]
	ln, err := n.Listen("tcp", ":0")
	if err != nil {
		panic(err)
	}
	for i := range 10 {
		_ = n.Go(func() {
			defer func() { *ended++ }()
			switch i % 5 {
			case 0:
				_, _ = empty.Take(bg)
			case 1:
				_ = suspend.Sleep(bg, time.Hour)
			case 2:
				_, _ = ln.Accept()
			case 3:
				c, err := n.Dial(bg, "tcp", ln.Addr().String())
				if err == nil {
					_, _ = c.Read(make([]byte, 1))
				}
			case 4:
				_, _ = suspend.Select(bg, suspend.CaseOf(empty.TakeOp()), suspend.CaseOf(suspend.After(time.Hour)))
			}
			*went++
		})
	}
	return ended, went
}

func TestCrashEndsTheTasksOfTheNode(t *testing.T) {
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		n := w.Node("n")
		ended, went := crowd(n)
		other, _ := crowd(w.Node("other"))
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 2, *went, "two have accepted")
		n.Crash()
		require.True(t, n.Crashed())
		require.Equal(t, 10, *ended)
		require.ErrorIs(t, n.Go(func() {}), suspend.ErrClosed)
		_, err := n.Dial(ctx, "tcp", "other:1")
		require.ErrorIs(t, err, net.ErrClosed)
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 2, *went)
		require.Equal(t, 2, *other)
		return nil
	}, simulation.TestOptions{Seeds: 30})
}

// A value that was handed over to a task of a crashed node is lost. Its place in the queue is not: the next waiter is served.
func TestACrashedTaskLeavesItsQueue(t *testing.T) {
	simulation.Test(t, func(ctx context.Context, w *simulation.World) error {
		var m mvar.MVar[int]
		n := w.Node("n")
		_ = n.Go(func() { _, _ = m.Take(ctx); t.Error("a task of a crashed node has continued") })
		_ = suspend.Sleep(ctx, 1)
		got := 0
		_ = w.Go(func() { got, _ = m.Take(ctx) })
		_ = suspend.Sleep(ctx, 1)
		n.Crash()
		require.NoError(t, m.Put(ctx, 7))
		_ = suspend.Sleep(ctx, 1)
		require.Equal(t, 7, got)
		return nil
	}, simulation.TestOptions{Seeds: 30})
}

func TestATaskMayCrashItsOwnNode(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, defers := w.Node("n"), 0
		_ = n.Go(func() {
			defer func() { defers++ }()
			n.Crash()
			t.Error("Crash has returned to a task of the node")
		})
		_ = suspend.Sleep(ctx, 1)
		require.Equal(t, 1, defers)
		require.True(t, n.Crashed())
		return nil
	})
}

func TestCrashResetsThePeers(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		_, _ = b.Write([]byte("not read"))
		_ = suspend.Sleep(ctx, time.Second)
		w.Node("b").Crash()
		w.Node("b").Crash()
		_ = suspend.Sleep(ctx, time.Second)
		_, err := a.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = w.Node("a").Dial(ctx, "tcp", a.RemoteAddr().String())
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

func TestRestart(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		n, boots, late := w.Node("n"), 0, 0
		serve := func(ctx context.Context) {
			boots++
			ln, err := n.Listen("tcp", ":80") // the port is free again
			require.NoError(t, err)
			n.AfterFunc(time.Hour, func() { late++ })
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = n.Go(func() { _, _ = fmt.Fprintf(c, "boot %d", boots); _ = c.Close() })
			}
		}
		n.Restart(serve)
		for boot := 1; boot <= 3; boot++ {
			_ = suspend.Sleep(ctx, time.Second)
			c, err := w.Node("client").Dial(ctx, "tcp", "n:80")
			require.NoError(t, err)
			text, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("boot %d", boot), string(text))
			if boot == 2 {
				n.Crash()
			}
			n.Restart(serve)
		}
		_ = suspend.Sleep(ctx, 2*time.Hour)
		require.Equal(t, 1, late, "timers of earlier boots have fired")
	})
}

func TestPause(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, ticks := w.Node("n"), 0
		a, b := pair(ctx, w)
		_ = n.Go(func() {
			for {
				_ = suspend.Sleep(ctx, time.Second)
				ticks++
			}
		})
		_ = suspend.Sleep(ctx, 10*time.Second+1)
		require.Equal(t, 10, ticks)
		n.Pause()
		w.Node("b").Pause()
		_, _ = a.Write([]byte("kept"))
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 10, ticks)
		n.Resume()
		w.Node("b").Resume()
		_ = suspend.Sleep(ctx, 10*time.Second-1)
		require.Equal(t, 20, ticks) // one of them was late
		_, err := io.ReadFull(b, make([]byte, 4))
		return err
	})
}

func TestACrashOfAPausedNode(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, ended := w.Node("n"), 0
		for range 5 {
			_ = n.Go(func() { defer func() { ended++ }(); _ = suspend.Sleep(ctx, time.Second); waitForever() })
		}
		_ = suspend.Sleep(ctx, 1)
		n.AfterFunc(time.Second, func() { t.Error("a timer of a crashed node has fired") })
		n.Pause()
		_ = suspend.Sleep(ctx, time.Minute)
		n.Crash()
		require.Equal(t, 5, ended)
		n.Restart(func(context.Context) { ended++ })
		_ = suspend.Sleep(ctx, 1)
		require.Equal(t, 6, ended)
		return nil
	})
}

func TestSkew(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		n, begin := w.Node("n"), w.Now()
		n.Skew(time.Hour, 2)
		require.Equal(t, begin.Add(time.Hour), n.Now())
		took := time.Duration(0)
		_ = n.Go(func() {
			require.Equal(t, n.Now(), suspend.Now())
			_ = suspend.Sleep(ctx, time.Minute)
			took = w.Now().Sub(begin)
		})
		_ = suspend.Sleep(ctx, time.Minute)
		require.Equal(t, 30*time.Second, took)
		require.Equal(t, begin.Add(time.Hour+2*time.Minute), n.Now())
		n.Skew(0, 1)
		require.Equal(t, w.Now(), n.Now())
		return nil
	})
}

func TestHoldAndHeal(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		require.NoError(t, w.Node("c").Go(func() {}))
		w.Partition([]string{"a", "c"})
		for i := range 10 {
			_, err := a.Write([]byte{byte(i)})
			require.NoError(t, err)
		}
		require.NoError(t, b.SetReadDeadline(suspend.Now().Add(time.Minute)))
		n, err := b.Read(make([]byte, 100))
		require.Zero(t, n)
		require.Error(t, err)
		dialled, end := time.Duration(0), false
		spawn(w, func() {
			begin := suspend.Now()
			_, err := w.Node("a").Dial(ctx, "tcp", "b:1")
			require.ErrorIs(t, err, syscall.ECONNREFUSED) // the request is held, and the response comes after Heal
			dialled, end = suspend.Now().Sub(begin), true
		})
		_ = suspend.Sleep(ctx, time.Minute)
		require.False(t, end)
		w.Heal()
		_, err = a.Write([]byte{10}) // does not overtake
		require.NoError(t, err)
		require.NoError(t, b.SetReadDeadline(time.Time{}))
		got := make([]byte, 11)
		_, err = io.ReadFull(b, got)
		require.NoError(t, err)
		require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, got)
		_ = suspend.Sleep(ctx, time.Second)
		require.Equal(t, time.Minute, dialled.Truncate(time.Minute))
	})
}

func TestHeldForLongerThanTCPWaits(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		idle, _ := pair(ctx, w)
		w.Link("a", "b").Hold()
		_, err := a.Write([]byte("x"))
		require.NoError(t, err)
		begin := suspend.Now()
		_, err = a.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, 15*time.Minute, suspend.Now().Sub(begin))
		begin = suspend.Now()
		_, err = w.Node("a").Dial(ctx, "tcp", "b:1")
		require.ErrorIs(t, err, syscall.ETIMEDOUT)
		require.Equal(t, 127*time.Second, suspend.Now().Sub(begin))
		w.Heal()
		_ = suspend.Sleep(ctx, time.Second)
		_, err = b.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		_, err = idle.Write([]byte("nothing was on hold here"))
		require.NoError(t, err)
	})
}

func TestCut(t *testing.T) {
	eachSeed(t, func(ctx context.Context, t *testing.T, w *simulation.World) {
		a, b := pair(ctx, w)
		w.Link("b", "a").Cut()
		for _, c := range []net.Conn{a, b} {
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		_, err := w.Node("a").Dial(ctx, "tcp", "b:1")
		require.ErrorIs(t, err, syscall.EHOSTUNREACH)
		w.Link("a", "b").Heal()
		pair(ctx, w)
	})
}

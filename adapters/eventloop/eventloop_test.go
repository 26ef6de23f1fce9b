package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// open makes a Loop and closes it at the end of the test, which checks that nothing is left of it.
func open(t testing.TB, o eventloop.Options) *eventloop.Loop {
	t.Helper()
	before := descriptors()
	l, err := eventloop.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		within(t, func() { l.Close() })
		schedtest.Eventually(t, "no goroutine of the loop is left", func() bool { return !strings.Contains(schedtest.Stacks(), "braid/adapters/eventloop.(*") })
		if before >= 0 {
			schedtest.Eventually(t, "no descriptor is left", func() bool { return descriptors() <= before })
		}
	})
	return l
}

func descriptors() int {
	e, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(e)
}

// within runs f, and ends the process with all stacks if f does not return.
func within(t testing.TB, f func()) {
	t.Helper()
	defer schedtest.Within(t, schedtest.Deadline)()
	f()
}

// task runs f as a task of l and returns when the task has ended.
func task(t testing.TB, l suspend.Spawner, f func()) {
	t.Helper()
	within(t, func() {
		done := make(chan struct{})
		if err := l.Go(func() { defer close(done); f() }); err != nil {
			t.Error(err)
			return
		}
		<-done
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// pair returns two connected conns of l.
func pair(t testing.TB, l *eventloop.Loop) (a, b *eventloop.Conn) {
	t.Helper()
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	defer ln.Close()
	c := make(chan net.Conn, 1)
	go func() { c <- must(ln.Accept()) }()
	a = must(l.Dial(context.Background(), "tcp", ln.Addr().String()))
	return a, (<-c).(*eventloop.Conn)
}

// suspended returns when n tasks of l are suspended and none runs.
func suspended(t testing.TB, l *eventloop.Loop, n int64) {
	t.Helper()
	schedtest.Eventually(t, "all are suspended", func() bool { return l.Stats().Suspended >= n && l.Stats().Running == 0 })
}

func echo(_ context.Context, c net.Conn) { _, _ = io.Copy(c, c) }

func TestEcho(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: n})
			ln := must(l.Listen("tcp", "127.0.0.1:0"))
			served := make(chan error, 1)
			go func() { served <- ln.Serve(context.Background(), echo) }()
			const conns, rounds = 100, 5
			done := make(chan error, conns)
			within(t, func() {
				for range conns {
					if err := l.Go(func() { done <- roundTrips(l, ln.Addr().String(), rounds) }); err != nil {
						t.Error(err)
					}
				}
				for range conns {
					if err := <-done; err != nil {
						t.Error(err)
					}
				}
				ln.Close()
				if err := <-served; !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}

func roundTrips(l *eventloop.Loop, addr string, rounds int) error {
	c, err := l.Dial(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	for i := range rounds {
		msg := []byte(strings.Repeat(c.LocalAddr().String(), 1+100*i))
		if _, err := c.Write(msg); err != nil {
			return err
		}
		got := make([]byte, len(msg))
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		if string(got) != string(msg) {
			return errors.New("bytes of another connection")
		}
	}
	return nil
}

//go:build unix

package eventloop_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// stale checks whether an idle connection is still good, as the pools of go-redis and other clients do: with one read that does
// not wait. Without SyscallConn they skip the check, and send a request to a server that has closed the connection.
func stale(c net.Conn) (n int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var got error
	err = raw.Read(func(fd uintptr) bool {
		n, got = syscall.Read(int(fd), make([]byte, 1))
		return true
	})
	return n, errors.Join(err, got)
}

func TestSyscallConn(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []net.Conn{a, eventloop.WithContext(ctx, a)} {
		task(t, l, func() {
			if n, err := stale(c); !errors.Is(err, syscall.EAGAIN) {
				t.Error("idle:", n, err)
			}
			must(b.Write([]byte("x")))
			raw := must(c.(syscall.Conn).SyscallConn())
			calls := 0
			must(0, raw.Read(func(fd uintptr) bool { // waits
				calls++
				n, err := syscall.Read(int(fd), make([]byte, 1))
				return n == 1 && err == nil
			}))
			must(0, raw.Write(func(fd uintptr) bool { return must(syscall.Write(int(fd), []byte("y"))) == 1 }))
			must(b.Read(make([]byte, 1)))
			must(0, raw.Control(func(fd uintptr) {
				if v := must(syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)); v == 0 {
					t.Error("it delays")
				}
			}))
		})
	}
	bound := must(eventloop.WithContext(ctx, a).(syscall.Conn).SyscallConn())
	done := make(chan error, 1)
	must(0, l.Go(func() { done <- bound.Read(func(uintptr) bool { return false }) }))
	suspended(t, l, 1)
	cancel()
	within(t, func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	must(0, b.Close())
	task(t, l, func() {
		_, _ = a.Read(make([]byte, 1)) // waits for the end
		if n, err := stale(a); n != 0 || err != nil {
			t.Error("at the end:", n, err)
		}
	})
	r, w, err := l.Pipe()
	must(0, err)
	defer w.Close()
	for _, c := range []*eventloop.Conn{a, r} {
		must(0, c.Close())
		if _, err := stale(c); !errors.Is(err, net.ErrClosed) {
			t.Error("closed:", err)
		}
		if err := must(c.SyscallConn()).Control(func(uintptr) {}); !errors.Is(err, net.ErrClosed) {
			t.Error("closed:", err)
		}
	}
}

func TestSocketOptions(t *testing.T) {
	l := open(t, eventloop.Options{})
	a, b := pair(t, l)
	defer b.Close()
	option := func(level, name int) (v int) {
		must(0, must(a.SyscallConn()).Control(func(fd uintptr) { v = must(syscall.GetsockoptInt(int(fd), level, name)) }))
		return v
	}
	must(0, a.SetNoDelay(false))
	must(0, a.SetKeepAlive(false))
	if option(syscall.IPPROTO_TCP, syscall.TCP_NODELAY) != 0 || option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 0 {
		t.Error("on")
	}
	must(0, a.SetNoDelay(true))
	must(0, a.SetKeepAlive(true))
	must(0, a.SetKeepAlivePeriod(time.Minute))
	if option(syscall.IPPROTO_TCP, syscall.TCP_NODELAY) == 0 || option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) == 0 {
		t.Error("off")
	}
	must(0, a.Close())
	for _, err := range []error{a.SetNoDelay(true), a.SetKeepAlive(true), a.SetKeepAlivePeriod(time.Minute)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if err := a.SetDeadline(time.Now()); !errors.As(err, new(*net.OpError)) {
		t.Error(err)
	} else if _, ok := err.(net.Error); !ok { // stock code makes this assertion
		t.Errorf("%T", err)
	}
}

func TestShutdown(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- ln.Serve(ctx, echo) }()
	c := must(net.Dial("tcp", ln.Addr().String()))
	defer c.Close()
	must(c.Write([]byte("x")))
	must(c.Read(make([]byte, 1)))
	short, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	within(t, func() {
		if err := ln.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("with a handler under way:", err)
		}
		must(c.Write([]byte("x"))) // the handler continues
		must(c.Read(make([]byte, 1)))
		done := make(chan error, 1)
		go func() { done <- ln.Shutdown(context.Background()) }()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		<-served
		over, stop := context.WithCancel(context.Background())
		stop()
		if err := must(l.Listen("tcp", "127.0.0.1:0")).Shutdown(over); err != nil {
			t.Error("nothing is left:", err)
		}
	})
}

// Tasks of a Loop run on one of its reactors. A check whether the caller is on the Loop's scheduler must succeed there.
func TestSame(t *testing.T) {
	l, other := must(eventloop.New(eventloop.Options{Loops: 2})), must(eventloop.New(eventloop.Options{}))
	defer other.Close()
	defer l.Close()
	if l.Same(suspend.Here()) || !l.Same(l) || l.Same(other) {
		t.Error("from outside")
	}
	for range 2 {
		task(t, l, func() {
			here := suspend.Here()
			if s, ok := suspend.As[interface{ Same(suspend.Spawner) bool }](here); !ok || !s.Same(l) || !s.Same(here) || s.Same(other) {
				t.Error("a reactor does not recognise its loop")
			}
			if !l.Same(here) || other.Same(here) {
				t.Error("in a task")
			}
		})
	}
}

// A task that was started through idle.Groups starts its tasks, timers and callbacks on its own reactor. Those on another reactor
// would wait for a thread that the kernel may not run, while the task yields in vain.
func TestATaskThatIsDecoratedStaysOnItsReactor(t *testing.T) {
	l := must(eventloop.New(eventloop.Options{Loops: 2}))
	defer l.Close()
	g := idle.New(idle.New(l, nil), nil)
	reactor := func() suspend.Spawner {
		t := suspend.Current()
		for w, ok := t.(interface{ Unwrap() suspend.Task }); ok; w, ok = t.(interface{ Unwrap() suspend.Task }) {
			t = w.Unwrap()
		}
		return t.(interface{ Spawner() suspend.Spawner }).Spawner()
	}
	used := map[suspend.Spawner]int{}
	for range 4 {
		task(t, g, func() {
			here, ended := reactor(), latch.New(4)
			used[here]++
			for range 4 {
				must(0, suspend.Here().Go(func() {
					if reactor() != here {
						t.Error("a task of a Group started a task on another reactor")
					}
					ended.CountDown()
				}))
			}
			must(0, ended.Wait(context.Background()))
		})
	}
	if len(used) != 2 {
		t.Errorf("%d reactors were used", len(used))
	}
}

func TestBlockingIsCounted(t *testing.T) {
	l := open(t, eventloop.Options{BlockingWidth: 1, MaxBlocking: 1})
	release := make(chan struct{})
	for range 3 {
		must(0, l.Go(func() { _ = suspend.Blocking(context.Background(), func() { <-release }) }))
	}
	suspended(t, l, 3)
	if s := l.Stats(); s.Blocking != 1 || s.BlockingQueued != 2 {
		t.Errorf("%+v", s)
	}
	close(release)
}

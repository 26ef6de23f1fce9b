package eventloop_test

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/testrig/schedtest"
)

// endures returns n if BRAID_ENDURANCE is set, and a two-hundredth of n otherwise.
func endures[N ~int | ~int64](n N) N {
	if os.Getenv("BRAID_ENDURANCE") == "" {
		return n / 200
	}
	return n
}

// leavesNothing runs f, and checks that it leaves no goroutine and no descriptor behind.
func leavesNothing(t *testing.T, f func()) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer schedtest.Within(t, 5*time.Minute)()
	must(net.Listen("tcp", "127.0.0.1:0")).Close() // makes the runtime open its own epoll instance before the count
	before := descriptors()
	f()
	schedtest.Eventually(t, "no descriptor is left", func() bool { return descriptors() <= before })
}

// serving runs f with the address of an echo server, on a loop of two reactors.
func serving(t *testing.T, f func(l *eventloop.Loop, addr string)) {
	l := must(eventloop.New(eventloop.Options{Loops: 2, StallAfter: -1}))
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(bg)
	served := make(chan error, 1)
	go func() { served <- ln.Serve(ctx, echo) }()
	f(l, ln.Addr().String())
	cancel()
	<-served
	must(0, l.Close())
}

// One connection after another is accepted, served and closed: by the server, by its task, or by the client first.
func TestManyConnectionsLeaveNothing(t *testing.T) {
	leavesNothing(t, func() {
		serving(t, func(l *eventloop.Loop, addr string) {
			for i := range endures(100_000) {
				c := must(net.Dial("tcp", addr))
				must(0, c.(*net.TCPConn).SetLinger(0)) // frees the port at once; otherwise the ports run out
				if i%4 != 0 {
					must(c.Write([]byte{1}))
					must(io.ReadFull(c, make([]byte, 1)))
				}
				c.Close()
			}
		})
	})
}

// The Close of a loop closes both ends of each idle connection.
func TestIdleConnectionsLeaveNothing(t *testing.T) {
	var limit syscall.Rlimit
	must(0, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	n := min(endures(20_000), int(limit.Cur/2)-50)
	leavesNothing(t, func() {
		clients := make([]net.Conn, n)
		serving(t, func(l *eventloop.Loop, addr string) {
			for i := range clients {
				clients[i] = must(l.Dial(bg, "tcp", addr))
				must(clients[i].Write([]byte{1}))
				must(io.ReadFull(clients[i], make([]byte, 1)))
			}
			schedtest.Eventually(t, "all are idle", func() bool { return l.Stats().Suspended >= int64(n) })
			t.Log(n, "connections are idle, with", runtime.NumGoroutine(), "goroutines")
		})
		for _, c := range clients {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a connection outlives its loop")
			}
			c.Close()
		}
	})
}

// A task blocks natively for a minute, while up to a thousand connections are served.
func TestAMinuteBesideATaskThatWaitsNatively(t *testing.T) {
	const after = 10 * time.Millisecond
	lasts := endures(time.Minute)
	for range 8 { // repeats, because the machine may be busy
		took := map[bool][]time.Duration{}
		for _, stuck := range []bool{false, true} {
			leavesNothing(t, func() {
				l := must(eventloop.New(eventloop.Options{StallAfter: -1, HandOver: after}))
				ln := must(l.Listen("tcp", "127.0.0.1:0"))
				ctx, cancel := context.WithCancel(bg)
				served, release := make(chan error, 1), make(chan struct{})
				go func() { served <- ln.Serve(ctx, echo) }()
				clients := make([]net.Conn, min(1000, endures(20_000)))
				for i := range clients {
					clients[i] = must(net.Dial("tcp", ln.Addr().String()))
				}
				if stuck {
					must(0, l.Go(func() { <-release }))
				}
				buf := make([]byte, 1)
				for i, begun := 0, time.Now(); time.Since(begun) < lasts; i++ {
					began := time.Now()
					must(clients[i%len(clients)].Write(buf))
					must(io.ReadFull(clients[i%len(clients)], buf))
					took[stuck] = append(took[stuck], time.Since(began))
				}
				close(release)
				for _, c := range clients {
					c.Close()
				}
				cancel()
				<-served
				must(0, l.Close())
			})
			slices.Sort(took[stuck])
		}
		p99 := func(stuck bool) time.Duration { return took[stuck][len(took[stuck])*99/100] }
		t.Logf("%d echoes while a task waits: p50 %v, p99 %v, most %v; %d while none waits: p99 %v", len(took[true]), took[true][len(took[true])/2],
			p99(true), took[true][len(took[true])-1], len(took[false]), p99(false))
		if p99(true) < 3*after+p99(false) {
			return
		}
	}
	t.Error("echoes take too long while a task waits natively")
}

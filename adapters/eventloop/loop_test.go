package eventloop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

func TestSleep(t *testing.T) {
	l := open(t, eventloop.Options{})
	for name, sleep := range map[string]func(context.Context, time.Duration) error{
		"suspend": suspend.Sleep,
		"dial":    func(ctx context.Context, d time.Duration) error { return eventloop.SleepOn(ctx, l, d) },
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var due []time.Time // in the order in which the timers fire; the tasks may begin at different times
			var all sync.WaitGroup
			for _, ms := range []int{30, 10, 20, 0, 10} {
				all.Add(1)
				must(0, l.Go(func() {
					defer all.Done()
					start := time.Now()
					d := time.Duration(ms) * time.Millisecond
					if err := sleep(context.Background(), d); err != nil {
						t.Error(err)
					}
					if time.Since(start) < d {
						t.Errorf("%v early", d)
					}
					mu.Lock()
					due = append(due, start.Add(d))
					mu.Unlock()
				}))
			}
			within(t, all.Wait)
			const grain = 5 * time.Millisecond // the start is measured before the timer is set
			for i := range due[1:] {
				if due[i+1].Before(due[i].Add(-grain)) {
					t.Errorf("woken in the order %v", due)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			must(0, l.Go(func() { done <- sleep(ctx, time.Hour) }))
			suspended(t, l, 1)
			cancel()
			within(t, func() {
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		})
	}
}

func TestAfterFunc(t *testing.T) {
	l := open(t, eventloop.Options{})
	t.Run("order", func(t *testing.T) {
		got := make(chan int, 100)
		task(t, l, func() { // nothing runs between these lines
			for i, ms := range []int{30, 10, 20, -1, 0} {
				suspend.Here().(interface {
					AfterFunc(time.Duration, func()) func() bool
				}).AfterFunc(time.Duration(ms)*time.Millisecond, func() { got <- i })
			}
			for i := range 20 {
				l.AfterFunc(40*time.Millisecond, func() { got <- 100 + i })
			}
		})
		within(t, func() {
			var order []int
			for range 25 {
				order = append(order, <-got)
			}
			if !slices.Equal(order[:5], []int{3, 4, 1, 2, 0}) || !slices.IsSorted(order[5:]) {
				t.Error(order)
			}
		})
	})
	t.Run("stop", func(t *testing.T) {
		stop := l.AfterFunc(time.Hour, func() { t.Error("called") })
		if !stop() || stop() {
			t.Error("not stopped once")
		}
		ran := make(chan struct{})
		stop = l.AfterFunc(time.Millisecond, func() { close(ran) })
		within(t, func() { <-ran })
		if stop() {
			t.Error("stopped after it ran")
		}
	})
	t.Run("an earlier timer ends the sleep", func(t *testing.T) {
		defer l.AfterFunc(time.Hour, func() {})()
		suspendedLoop := make(chan struct{})
		l.AfterFunc(time.Millisecond, func() { close(suspendedLoop) })
		within(t, func() { <-suspendedLoop })
	})
	t.Run("must not suspend", func(t *testing.T) {
		got := make(chan any, 2)
		f := func() {
			defer func() { got <- recover() }()
			_ = suspend.Sleep(context.Background(), time.Hour)
		}
		l.AfterFunc(0, f)
		must(0, l.Execute(f))
		within(t, func() {
			for range 2 {
				if v := <-got; v != "suspend: suspending is forbidden here (in a callback, or under Bind(nil))" {
					t.Error(v)
				}
			}
		})
	})
	t.Run("a Goexit ends one", func(t *testing.T) {
		ran := make(chan struct{})
		task(t, l, func() {
			l.AfterFunc(0, runtime.Goexit)
			l.AfterFunc(0, func() { close(ran) })
		})
		within(t, func() { <-ran })
	})
}

func TestYielderDoesNotStarveIO(t *testing.T) {
	l := open(t, eventloop.Options{})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	go ln.Serve(context.Background(), echo)
	var stop atomic.Bool
	for range 3 {
		must(0, l.Go(func() {
			for !stop.Load() {
				suspend.Yield()
			}
		}))
	}
	task(t, l, func() {
		if err := roundTrips(l, ln.Addr().String(), 20); err != nil {
			t.Error(err)
		}
		if err := suspend.Sleep(context.Background(), 5*time.Millisecond); err != nil {
			t.Error(err)
		}
	})
	stop.Store(true)
}

func TestReadyConnDoesNotStarveOthers(t *testing.T) {
	l := open(t, eventloop.Options{})
	r, w, err := l.Pipe()
	must(0, err)
	var stop atomic.Bool
	var ops atomic.Int64
	ended := make(chan struct{})
	must(0, l.Go(func() {
		defer close(ended)
		buf := make([]byte, 1)
		for !stop.Load() { // on Linux, neither call has to wait
			must(w.Write(buf))
			must(r.Read(buf))
			ops.Add(2)
		}
	}))
	task(t, l, func() {
		for range 3 {
			if err := suspend.Sleep(context.Background(), 2*time.Millisecond); err != nil {
				t.Error(err)
			}
		}
	})
	stop.Store(true)
	within(t, func() { <-ended })
	if ops.Load() == 0 {
		t.Error("uncovered: no I/O in the meantime")
	}
}

func TestReactorsShareAccepts(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: 2})
			address := "127.0.0.1:0"
			if network == "unix" {
				address = t.TempDir() + "/s"
			}
			ln := must(l.Listen(network, address))
			ctx, cancel := context.WithCancel(context.Background())
			served := make(chan error, 1)
			var mu sync.Mutex
			handled := map[suspend.Spawner]int{}
			go func() {
				served <- ln.Serve(ctx, func(_ context.Context, c net.Conn) {
					here := suspend.Here()
					mu.Lock()
					handled[here]++
					mu.Unlock()
					_ = here.Go(func() {
						if suspend.Here() != here {
							t.Error("Go left the reactor")
						}
					})
					_ = l.Go(func() {
						if suspend.Here() != here {
							t.Error("the loop's Go left the reactor")
						}
					})
					echo(ctx, c)
				})
			}()
			for range 64 {
				c := must(net.Dial(network, ln.Addr().String()))
				must(c.Write([]byte("x")))
				must(io.ReadFull(c, make([]byte, 1)))
				c.Close()
			}
			cancel()
			within(t, func() { <-served })
			if len(handled) != 2 {
				t.Error(handled)
			}
		})
	}
}

// Each reactor has a socket for the same port. A second Listener on this port is refused.
func TestPortIsTaken(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	if other, err := l.Listen("tcp", ln.Addr().String()); err == nil {
		other.Close()
		t.Error("two Listeners on one port")
	}
	for range 10 { // Accept takes connections from all sockets
		done := make(chan error, 1)
		go func() {
			c, err := ln.Accept()
			if err == nil {
				c.Close()
			}
			done <- err
		}()
		c := must(net.Dial("tcp", ln.Addr().String()))
		within(t, func() { must(0, <-done) })
		c.Close()
	}
}

func TestBlockingWidth(t *testing.T) {
	const width, n = 2, 10
	l := open(t, eventloop.Options{BlockingWidth: width, MaxBlocking: width})
	var now, most, exits atomic.Int64
	release := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		must(0, l.Go(func() {
			defer all.Done()
			err := suspend.Blocking(context.Background(), func() {
				k := now.Add(1)
				for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
				}
				<-release
				now.Add(-1)
				if i == 3 {
					exits.Add(1)
					runtime.Goexit()
				}
			})
			if err != nil || i == 3 {
				t.Error(i, err)
			}
		}))
	}
	schedtest.Eventually(t, "as many as may", func() bool { return now.Load() == width })
	schedtest.Quiet(t)
	if n := now.Load(); n != width {
		t.Errorf("%d at the same time", n)
	}
	close(release)
	within(t, all.Wait)
	if most.Load() != width || exits.Load() != 1 {
		t.Error(most.Load(), exits.Load())
	}
}

func TestClose(t *testing.T) {
	for _, from := range []string{"goroutine", "fifo"} {
		t.Run(from, func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: 2})
			stock := must(net.Listen("tcp", "127.0.0.1:0")) // a peer that does not notice the Close
			defer stock.Close()
			a := must(l.Dial(context.Background(), "tcp", stock.Addr().String()))
			defer must(stock.Accept()).Close()
			ln := must(l.Listen("tcp", "127.0.0.1:0"))
			type result struct {
				err, want error
			}
			done := make(chan result, 20)
			n := 0
			wait := func(want error, op func() error) {
				n++
				must(0, l.Go(func() { done <- result{op(), want} }))
			}
			wait(net.ErrClosed, func() error { _, err := a.Read(make([]byte, 1)); return err })
			wait(net.ErrClosed, func() error { _, err := a.Write(make([]byte, 64<<20)); return err })
			wait(net.ErrClosed, func() error { _, err := ln.Accept(); return err })
			suspended(t, l, int64(n)) // otherwise another reactor may begin to Serve first, and Accept fails
			wait(suspend.ErrClosed, func() error { return eventloop.SleepOn(context.Background(), l, time.Hour) })
			calls, asleep := make(chan struct{}), make(chan struct{})
			wait(nil, func() error { return suspend.Blocking(context.Background(), func() { <-calls }) })
			wait(net.ErrClosed, func() error { return ln.Serve(context.Background(), echo) })
			suspended(t, l, int64(n))
			wait(nil, func() error { close(asleep); return suspend.Sleep(context.Background(), 20*time.Millisecond) })
			<-asleep
			l.AfterFunc(time.Hour, func() { t.Error("ran") })
			within(t, func() {
				if from == "fifo" {
					_ = fifo.Run(context.Background(), func(context.Context) error {
						_ = suspend.Here().Go(func() { close(calls) }) // Close waits for this call, so Close must suspend only its caller
						return l.Close()
					})
				} else {
					go l.Close()
					close(calls)
					must(0, l.Close())
				}
			})
			if len(done) != n {
				t.Errorf("%d of %d tasks have ended", len(done), n)
			}
			for range n {
				if r := <-done; !errors.Is(r.err, r.want) {
					t.Errorf("%v instead of %v", r.err, r.want)
				}
			}
			never := func() { t.Error("ran after Close") }
			for _, err := range []error{l.Go(never), l.Execute(never), l.Block(never), eventloop.SleepOn(context.Background(), l, time.Hour)} {
				if !errors.Is(err, suspend.ErrClosed) {
					t.Error(err)
				}
			}
			late := make(chan struct{})
			l.AfterFunc(0, func() { close(late) })
			<-late // the timer is one of package time
			if _, err := l.Listen("tcp", "127.0.0.1:0"); !errors.Is(err, net.ErrClosed) && !errors.Is(err, suspend.ErrClosed) {
				t.Error(err)
			}
			_, _, err := l.Pipe()
			for _, err := range []error{err, a.Close(), ln.Close(), ln.Serve(context.Background(), echo)} {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			}
			must(0, l.Close())
			if s := l.Stats(); s.Live != 0 || s.Running != 0 || s.Suspended != 0 {
				t.Error(s)
			}
		})
	}
}

// Shutdown refuses new work and new connections, and lets the tasks finish: with their own connections, with a connection of an
// idle reactor, and with new connections.
func TestShutdownOfALoop(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := open(t, eventloop.Options{Loops: n})
			stock := must(net.Listen("tcp", "127.0.0.1:0"))
			defer stock.Close()
			var lent *eventloop.Conn // a connection whose reactor no longer has a task
			task(t, l, func() { lent = must(l.Dial(context.Background(), "tcp", stock.Addr().String())) })
			peer := must(stock.Accept())
			defer peer.Close()
			ln := must(l.Listen("tcp", "127.0.0.1:0"))
			served := make(chan error, 1)
			go func() { served <- ln.Serve(context.Background(), echo) }()
			client := must(net.Dial("tcp", ln.Addr().String()))
			defer client.Close()
			ask := func() {
				_, err := client.Write([]byte("hello"))
				must(0, err)
				_, err = io.ReadFull(client, make([]byte, 5))
				must(0, err)
			}
			within(t, ask) // starts the handler
			read := make([]error, 4*n)
			for i := range read { // on each reactor
				must(0, l.Go(func() {
					_, read[i] = lent.Read(make([]byte, 1))
					if c, err := l.Dial(context.Background(), "tcp", stock.Addr().String()); err != nil {
						read[i] = err
					} else {
						read[i] = errors.Join(read[i], suspend.Sleep(context.Background(), time.Millisecond), c.Close())
					}
				}))
			}
			suspended(t, l, int64(len(read)))
			ended := make(chan error, 1)
			go func() { ended <- l.Shutdown(context.Background()) }()
			schedtest.Eventually(t, "each reactor refuses", func() bool {
				refused := 0
				for range n {
					if l.Go(func() {}) != nil {
						refused++
					}
				}
				return refused == n
			})
			require.EqualError(t, l.Go(func() {}), "eventloop: closed")
			_, err := l.Listen("tcp", "127.0.0.1:0")
			require.ErrorIs(t, err, net.ErrClosed)
			schedtest.Eventually(t, "no connection is accepted", func() bool {
				c, err := net.Dial("tcp", ln.Addr().String())
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			within(t, ask)
			require.Empty(t, ended)
			must(peer.Write(make([]byte, len(read)))) // for the readers on all reactors
			require.NoError(t, client.Close())
			within(t, func() { require.NoError(t, <-ended) })
			for _, err := range read {
				require.NoError(t, err)
			}
			require.ErrorIs(t, <-served, net.ErrClosed)
			_, err = lent.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed, "the connection stayed open until the end")
			over, cancel := context.WithCancel(context.Background())
			cancel()
			require.NoError(t, errors.Join(l.Shutdown(over), l.Close()), "nothing is left")
		})
	}
}

// A Shutdown whose context ends closes the connections, so that the tasks end, but does not wait for the tasks.
func TestShutdownOfALoopGivesUp(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	stock := must(net.Listen("tcp", "127.0.0.1:0")) // its connections stay open
	defer stock.Close()
	a := must(l.Dial(context.Background(), "tcp", stock.Addr().String()))
	defer must(stock.Accept()).Close()
	gate, got := make(chan struct{}), make(chan error, 1)
	must(0, l.Go(func() {
		_, err := a.Read(make([]byte, 1))
		got <- err
		_ = suspend.Blocking(context.Background(), func() { <-gate })
	}))
	suspended(t, l, 1)
	soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	within(t, func() { require.ErrorIs(t, l.Shutdown(soon), context.DeadlineExceeded) })
	within(t, func() { require.ErrorIs(t, <-got, net.ErrClosed) })
	within(t, func() { require.ErrorIs(t, l.Shutdown(soon), context.DeadlineExceeded, "the task runs on") })
	close(gate)
	within(t, func() { require.NoError(t, l.Close()) })
	require.NoError(t, l.Shutdown(soon))
}

func TestCloseInATaskPanics(t *testing.T) {
	l := open(t, eventloop.Options{})
	for _, on := range []suspend.Spawner{l, idle.New(l, nil)} { // in a task of a group, the Close would hang instead
		task(t, on, func() {
			schedtest.Panics(t, "eventloop: Close called from a task of the loop", func() { _ = l.Close() })
			schedtest.Panics(t, "eventloop: Shutdown called from a task of the loop", func() { _ = l.Shutdown(context.Background()) })
		})
	}
	task(t, l, func() {}) // the Loop is still open
}

// Tasks wake each other across reactors while a Close is under way. None is lost, and none runs after the Close.
func TestCloseStress(t *testing.T) {
	for range 30 {
		l := must(eventloop.New(eventloop.Options{Loops: 2}))
		var accepted, ran atomic.Int64
		var submitters sync.WaitGroup
		for range 3 {
			submitters.Go(func() {
				for {
					err := l.Go(func() {
						_ = eventloop.SleepOn(context.Background(), l, time.Microsecond)
						l.AfterFunc(0, func() {})
						ran.Add(1)
					})
					if err != nil {
						return
					}
					if accepted.Add(1); l.Stats().Live > 50 {
						runtime.Gosched()
					}
				}
			})
		}
		for l.Stats().Wakes < 3 {
			runtime.Gosched()
		}
		within(t, func() { must(0, l.Close()) })
		submitters.Wait()
		if accepted.Load() != ran.Load() {
			t.Fatal(accepted.Load(), ran.Load())
		}
	}
}

func TestHandlerEndsAlone(t *testing.T) {
	panics := make(chan any, 10)
	l := open(t, eventloop.Options{OnPanic: func(v any, _ []byte) { panics <- v }})
	ln := must(l.Listen("tcp", "127.0.0.1:0"))
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- ln.Serve(ctx, func(ctx context.Context, c net.Conn) {
			buf := make([]byte, 1)
			for {
				must(io.ReadFull(c, buf))
				switch buf[0] {
				case 'x':
					runtime.Goexit() // as a failing require does
				case 'p':
					panic("oops")
				}
				must(c.Write(buf))
			}
		})
	}()
	dial := func() net.Conn { return must(net.Dial("tcp", ln.Addr().String())) }
	say := func(c net.Conn, b byte) error {
		must(c.Write([]byte{b}))
		_, err := io.ReadFull(c, make([]byte, 1))
		return err
	}
	within(t, func() {
		stays := dial()
		defer stays.Close()
		must(0, say(stays, 'a'))
		for _, b := range []byte("xp") {
			c := dial()
			if err := say(c, b); err == nil {
				t.Error("answered")
			}
			c.Close()
		}
		if v := <-panics; v != "oops" {
			t.Error(v)
		}
		must(0, say(stays, 'a'))
		cancel() // ends the context of the remaining handler's conn
		if err := <-served; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err, ok := (<-panics).(error); !ok || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	// The Listener is still open, and can serve again.
	go func() { served <- ln.Serve(context.Background(), echo) }()
	within(t, func() {
		c := dial()
		must(0, say(c, 'a'))
		c.Close()
		ln.Close()
		if err := <-served; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestStallIsReported(t *testing.T) {
	reports := make(chan string, 100)
	l := open(t, eventloop.Options{StallAfter: 5 * time.Millisecond, OnStall: func(s []byte) { reports <- string(s) }})
	var stop atomic.Bool
	must(0, l.Go(func() { holdTheLoop(&stop) }))
	within(t, func() {
		for !strings.Contains(<-reports, "holdTheLoop") { // on a loaded machine, an earlier step may be reported first
		}
	})
	stop.Store(true)
}

func holdTheLoop(stop *atomic.Bool) {
	for !stop.Load() {
		runtime.Gosched()
	}
}

func TestStats(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	ctx, cancel := context.WithCancel(context.Background())
	for range 5 {
		must(0, l.Go(func() { _ = suspend.Sleep(ctx, time.Hour) }))
	}
	suspended(t, l, 5)
	if s := l.Stats(); s.Live != 5 || s.Suspended != 5 {
		t.Error(s)
	}
	cancel()
	schedtest.Eventually(t, "none is live", func() bool { return l.Stats().Live == 0 })
}

// After Close was called, a task may still block while it cleans up.
func TestBlockingAfterClose(t *testing.T) {
	l := open(t, eventloop.Options{Loops: 2})
	ctx, cancel := context.WithCancel(context.Background())
	cleaned := make(chan error, 2)
	for range 2 {
		must(0, l.Go(func() {
			_ = suspend.Sleep(ctx, time.Hour)
			ran := false
			err := suspend.Blocking(context.Background(), func() { ran = true })
			if err == nil && !ran {
				err = errors.New("not run")
			}
			cleaned <- err
		}))
	}
	suspended(t, l, 2)
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	for l.Go(func() {}) == nil { // until Close has begun
		runtime.Gosched()
	}
	cancel()
	within(t, func() { must(0, errors.Join(<-cleaned, <-cleaned, <-closed)) })
	if err := l.Block(func() { t.Error("ran") }); !errors.Is(err, suspend.ErrClosed) {
		t.Error(err)
	}
}

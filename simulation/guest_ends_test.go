package simulation_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/simulation/disk"
	"github.com/braidgo/braid/simulation/internal/chance"
	"github.com/braidgo/braid/suspend"
)

// guests runs main as a guest, with latency.
func guests(t *testing.T, main func(ctx context.Context, w *simulation.World) error) simulation.Report {
	t.Helper()
	simulation.Calm(t)
	return simulation.RunGuests(t, simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MinLatency: time.Millisecond, MaxLatency: 5 * time.Millisecond})
		return main(ctx, w)
	})
}

// pipe connects the nodes c and s.
func pipe(w *simulation.World) (c, s net.Conn) {
	cs, ss := make(chan net.Conn), make(chan net.Conn)
	listens := make(chan bool)
	w.Node("s").Start(func(ctx context.Context, h *simulation.Host) {
		l, _ := h.Listen("tcp", ":1")
		close(listens)
		c, _ := l.Accept()
		ss <- c
	})
	<-listens
	w.Node("c").Start(func(ctx context.Context, h *simulation.Host) {
		c, _ := h.Dial(ctx, "tcp", "s:1")
		cs <- c
	})
	return <-cs, <-ss
}

// apart runs the calling test in another process, because it leaves guests behind, and returns the output. It reports whether the
// caller is that process.
func apart(t *testing.T, fails bool) (child bool, out string) {
	t.Helper()
	if os.Getenv("BRAID_APART") != "" {
		return true, ""
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	c.Env = append(os.Environ(), "BRAID_APART=1")
	all, err := c.CombinedOutput()
	require.Equal(t, fails, err != nil, "%s", all)
	return false, string(all)
}

// A guest holds a mutex during a Read, and another guest waits for the mutex. The World continues.
func TestGuestHoldsAMutexOverARead(t *testing.T) {
	var end time.Duration
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		begun := time.Now()
		c, s := pipe(w)
		var mu sync.Mutex
		var wg sync.WaitGroup
		wg.Go(func() { mu.Lock(); defer mu.Unlock(); _, _ = c.Read(make([]byte, 1)) })
		time.Sleep(time.Millisecond)
		wg.Go(func() { mu.Lock(); defer mu.Unlock() })
		_, _ = s.Write([]byte("x"))
		wg.Wait()
		_, _ = s.Write([]byte("x"))
		_, _ = c.Read(make([]byte, 1))
		end = time.Since(begun)
		return nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, r.Level != "C", r.Ahead > 0) // at level C it is a wait like any other
	require.Equal(t, end, r.Elapsed)              // the clock of package time is up to date
}

// A long wait for a mutex counts as long, even if another guest calls the World again and again meanwhile.
func TestGuestWaitsForAMutexInParts(t *testing.T) {
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		c, s := pipe(w)
		var mu sync.Mutex
		var wg sync.WaitGroup
		wg.Go(func() { mu.Lock(); defer mu.Unlock(); _, _ = c.Read(make([]byte, 1)) })
		time.Sleep(time.Millisecond)
		wg.Go(func() { mu.Lock(); defer mu.Unlock() })
		w.Node("c").Start(func(ctx context.Context, h *simulation.Host) {
			for range 20 {
				_, _ = h.Dial(ctx, "tcp", "s:999") // is refused
				for begun := chance.Nanotime(); chance.Nanotime()-begun < int64(200*time.Microsecond); {
				}
			}
			_, _ = s.Write([]byte("x"))
		})
		wg.Wait()
		return nil
	})
	require.NoError(t, r.Err)
	if r.Level != "C" { // at this level no window waits for the mutex, but a busy machine may make a window long
		require.Positive(t, r.Long)
	}
}

// A guest holds a mutex during a Sleep, and another guest waits for the mutex. The run fails with ErrStuck and the stacks. At
// level C it works.
func TestGuestHoldsAMutexOverASleep(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	var end time.Duration
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		begun := time.Now()
		var mu sync.Mutex
		var wg sync.WaitGroup
		wg.Go(func() { mu.Lock(); defer mu.Unlock(); time.Sleep(time.Second) })
		time.Sleep(time.Millisecond)
		wg.Go(func() { mu.Lock(); defer mu.Unlock(); end = time.Since(begun) })
		wg.Wait()
		return nil
	})
	if r.Level == "C" {
		require.NoError(t, r.Err)
		require.Equal(t, time.Second, end)
		require.Zero(t, r.Ahead)
		return
	}
	require.Empty(t, os.Getenv("BRAID_OVERLAID"), "the overlay is not on")
	require.ErrorIs(t, r.Err, simulation.ErrStuck)
	require.ErrorContains(t, r.Err, "guests of the World:")
	require.ErrorContains(t, r.Err, "sync.Mutex.Lock")
}

func TestGuestEnds(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	var stop atomic.Bool
	for name, c := range map[string]struct {
		main func(ctx context.Context, w *simulation.World) error
		err  error
		text []string
	}{
		"nothing can happen": {func(ctx context.Context, w *simulation.World) error {
			w.Node("a").Start(func(ctx context.Context, h *simulation.Host) { l, _ := h.Listen("tcp", ":1"); _, _ = l.Accept() })
			<-make(chan int)
			return nil
		}, simulation.ErrDeadlock, []string{"guests of a:", "Accept", "guests of the World:", "chan receive"}},
		"nothing but ticks can happen": {func(ctx context.Context, w *simulation.World) error {
			w.Node("a").Start(func(context.Context, *simulation.Host) {
				for range time.Tick(time.Minute) {
				}
			})
			<-make(chan int)
			return nil
		}, simulation.ErrDeadlock, []string{"guests of a:", "guests of the World:", "chan receive"}},
		"a computation that takes long because the machine is busy": {func(context.Context, *simulation.World) error {
			for begun := chance.Nanotime(); time.Duration(chance.Nanotime()-begun) < 600*time.Millisecond; { // at most this much processor time
			}
			return nil
		}, nil, nil},
		"a loop": {func(ctx context.Context, w *simulation.World) error {
			w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
				for !stop.Load() {
				}
			})
			time.Sleep(time.Hour)
			return nil
		}, simulation.ErrBusy, []string{"guests of a:", "guest_ends_test.go"}},
		"a call for a task": {func(ctx context.Context, w *simulation.World) error {
			_, err := w.Node("a").Dial(ctx, "tcp", "a:1")
			return err
		}, simulation.ErrForeign, []string{"its Host"}},
		"main exits": {func(ctx context.Context, w *simulation.World) error { runtime.Goexit(); return nil }, simulation.ErrExited, nil},
		"an invariant does not hold": {func(ctx context.Context, w *simulation.World) error {
			w.Always(func() error { return errOdd })
			time.Sleep(time.Hour)
			return nil
		}, errOdd, nil},
	} {
		t.Run(name, func(t *testing.T) {
			*simulation.BusyAfter = 10 * time.Second
			if name == "a loop" || strings.HasPrefix(name, "a computation") {
				*simulation.BusyAfter = 500 * time.Millisecond
			}
			r := guests(t, c.main)
			stop.Store(stop.Load() || name == "a loop")
			require.ErrorIs(t, r.Err, c.err)
			for _, s := range c.text {
				require.ErrorContains(t, r.Err, s)
			}
		})
	}
}

var errOdd = errors.New("odd")

// A line of the output names a guest that opens a real port: if the clock cannot advance, at the end of a run that passes or
// fails, and even if the port was closed meanwhile.
func TestGuestOutside(t *testing.T) {
	if child, _ := apart(t, false); !child || simulation.Nodes() { // with the overlay, package net is the network of the node
		return
	}
	var listener atomic.Value // a stuck run leaves its guest behind
	serves := func(w *simulation.World) {
		ready := make(chan bool)
		w.Node("s").Start(func(context.Context, *simulation.Host) {
			l, _ := net.Listen("tcp", "127.0.0.1:0")
			listener.Store(l)
			close(ready)
			_ = http.Serve(l, nil) // the line that is reported
		})
		<-ready
	}
	dials := func(w *simulation.World, times int) (err error) {
		errs := make(chan error)
		w.Node("c").Start(func(ctx context.Context, h *simulation.Host) {
			for range times {
				_, err = h.Dial(ctx, "tcp", "s:80")
			}
			errs <- err
		})
		return <-errs
	}
	for name, main := range map[string]func(ctx context.Context, w *simulation.World) error{
		"stuck":  func(_ context.Context, w *simulation.World) error { serves(w); time.Sleep(time.Second); return nil },
		"passes": func(_ context.Context, w *simulation.World) error { serves(w); _ = dials(w, 1); return nil },
		"fails": func(_ context.Context, w *simulation.World) error {
			w.SetFaults(simulation.Faults{})
			serves(w)
			return dials(w, 1)
		},
		"closes": func(_ context.Context, w *simulation.World) error {
			serves(w)
			_ = dials(w, 20)
			_ = listener.Load().(net.Listener).Close()
			time.Sleep(time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := guests(t, main)
			require.ErrorIs(t, r.Err, simulation.ErrStuck)
			require.Regexp(t, `(?m)^.*: real I/O at .*/guest_ends_test.go:\d+\. Use the Listen or the Dial of its Host$`, r.Err.Error())
			require.Equal(t, name == "fails", errors.Is(r.Err, syscall.ECONNREFUSED))
			_ = listener.Load().(net.Listener).Close()
		})
	}
}

// When a run ends, a call ends the guest that makes it, and a wait for ctx ends. A guest in a native wait or in a loop of ticks
// is left behind.
func TestGuestsLeft(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	var ended atomic.Int64
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		c, _ := pipe(w)
		go func() { defer ended.Add(1); _, _ = c.Read(make([]byte, 1)) }()
		go func() { <-make(chan int) }()
		w.Node("a").Start(func(ctx context.Context, h *simulation.Host) { defer ended.Add(1); <-ctx.Done() })
		go func() {
			for range time.Tick(time.Second) {
			}
		}()
		time.Sleep(5 * time.Second)
		return nil
	})
	require.NoError(t, r.Err)
	require.EqualValues(t, 2, ended.Load())
	require.Equal(t, 2, r.Left)
}

// The first line of a panic names the guest.
func TestGuestPanics(t *testing.T) {
	child, out := apart(t, true)
	if !child {
		_, line, _ := strings.Cut(out, "panic: a mistake\n\n")
		line, _, _ = strings.Cut(line, "\n")
		require.Contains(t, line, `"guest": "2", "node": "a", "seed": "1"`, out)
		return
	}
	guests(t, func(ctx context.Context, w *simulation.World) error {
		w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
			go func() { time.Sleep(time.Second); panic("a mistake") }()
		})
		time.Sleep(time.Hour)
		return nil
	})
}

// A crash resets the connections, and leaves a Host whose calls fail. It stops the guests, or cancels their context.
func TestGuestCrash(t *testing.T) {
	if child, _ := apart(t, false); !child { // with the overlay, guests remain
		return
	}
	var calls, exited atomic.Int64
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		c, s := pipe(w)
		var host *simulation.Host
		cancelled := false
		started := make(chan bool)
		w.Node("c").Start(func(ctx context.Context, h *simulation.Host) {
			host = h
			close(started)
			_, err := c.Read(make([]byte, 1))
			require.ErrorIs(t, err, net.ErrClosed)
			<-ctx.Done()
			cancelled = true
			defer exited.Add(1)
			for calls.Add(1) < 1e6 {
				_, _ = c.Write([]byte("x"))
			}
		})
		<-started
		w.Node("c").Crash()
		time.Sleep(time.Second)
		_, err := s.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Equal(t, !simulation.Nodes(), cancelled)
		_, err = host.Dial(ctx, "tcp", "s:1")
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = host.Listen("tcp", ":5")
		require.ErrorIs(t, err, net.ErrClosed)
		require.True(t, w.Node("c").Crashed())
		again := make(chan error)
		w.Node("c").Start(func(ctx context.Context, h *simulation.Host) { _, err := h.Listen("tcp", ":5"); again <- err })
		require.NoError(t, <-again)
		_, err = host.Listen("tcp", ":6")
		require.ErrorIs(t, err, net.ErrClosed)
		return nil
	})
	require.NoError(t, r.Err)
	if simulation.Nodes() {
		require.Zero(t, calls.Load())
		return
	}
	require.EqualValues(t, 1, exited.Load())
	require.InDelta(t, 2000, calls.Load(), 10)
}

// The synced contents of a disk survive a crash. A guest of an earlier boot ends when it uses the disk. A guest may hold a mutex
// during a Sync.
func TestGuestDisk(t *testing.T) {
	if child, _ := apart(t, false); !child { // with the overlay, guests remain
		return
	}
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		w.SetFaults(simulation.Faults{MaxSync: time.Second})
		n, synced := w.Node("a"), make(chan disk.FS)
		n.Start(func(ctx context.Context, h *simulation.Host) {
			f, err := h.FS().Create("log")
			require.NoError(t, err)
			var mu sync.Mutex
			var wg sync.WaitGroup
			write := func(off int64) { mu.Lock(); defer mu.Unlock(); _, _ = f.WriteAt([]byte("data"), off); _ = f.Sync() }
			wg.Go(func() { write(0) })
			wg.Go(func() { write(4) })
			wg.Wait()
			require.NoError(t, h.FS().Sync())
			synced <- h.FS()
			for {
				_, _ = f.WriteAt([]byte("more"), 8)
			}
		})
		old := <-synced
		n.Crash()
		exited := make(chan bool)
		go func() { defer close(exited); _, _ = old.Open("log"); t.Error("a call of a dead disk has returned") }()
		<-exited
		size := make(chan int64)
		n.Start(func(ctx context.Context, h *simulation.Host) {
			f, err := h.FS().Open("log")
			require.NoError(t, err)
			k, _ := f.Size()
			size <- k
		})
		require.GreaterOrEqual(t, <-size, int64(8))
		return nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, r.Level != "C", r.Ahead > 0)
	require.Positive(t, r.Elapsed)
}

// Deadlines, contexts and closes behave like those of package net.
func TestGuestConn(t *testing.T) {
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		c, s := pipe(w)
		begun := time.Now()
		_ = c.SetReadDeadline(begun.Add(time.Second))
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
		_ = c.SetReadDeadline(time.Now().Add(-1))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		_ = c.SetReadDeadline(time.Time{})

		go func() { // more than a window
			_, _ = s.Write([]byte(strings.Repeat("x", 300_000)))
			_ = s.(interface{ CloseWrite() error }).CloseWrite()
		}()
		n, p := 0, make([]byte, 1000)
		for err = nil; err == nil; {
			var k int
			k, err = c.Read(p)
			n += k
		}
		require.Equal(t, 300_000, n)

		w.Partition([]string{"s"})
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		begun = time.Now()
		dialled := make(chan error)
		w.Node("c").Start(func(_ context.Context, h *simulation.Host) { _, err := h.Dial(short, "tcp", "s:1"); dialled <- err })
		require.ErrorIs(t, <-dialled, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
		w.Heal()

		go func() { time.Sleep(time.Second); _ = s.Close() }()
		_, err = s.Read(p)
		require.ErrorIs(t, err, net.ErrClosed)
		return nil
	})
	require.NoError(t, r.Err)
}

// Tasks and guests of one World wait for each other with primitives of Braid.
func TestGuestsAndTasks(t *testing.T) {
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		asked, answered := promise.New[int](), promise.New[int]()
		_ = w.Node("a").Go(func() {
			x, _ := asked.Await(ctx)
			_ = suspend.Sleep(ctx, time.Second)
			_ = answered.Fill(x + 1)
		})
		go func() { time.Sleep(time.Second); _ = asked.Fill(1) }()
		x, err := answered.Await(ctx)
		require.Equal(t, 2, x)
		return err
	})
	require.NoError(t, r.Err)
	require.Equal(t, 2*time.Second, r.Elapsed)
}

// A context of package context ends the waits of a task: at its deadline, and when a guest cancels it. The World sleeps
// meanwhile.
func TestGuestCancelsATask(t *testing.T) {
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		until, cancel := context.WithCancel(ctx)
		ended := promise.New[time.Time]()
		_ = w.Node("a").Go(func() {
			require.ErrorIs(t, suspend.Sleep(short, time.Hour), context.DeadlineExceeded)
			require.ErrorIs(t, suspend.Sleep(until, time.Hour), context.Canceled)
			_ = ended.Fill(suspend.Now())
		})
		begun := time.Now()
		time.Sleep(time.Minute)
		cancel()
		end, err := ended.Await(ctx)
		require.Equal(t, time.Minute, end.Sub(begun))
		return err
	})
	require.NoError(t, r.Err)
	require.Equal(t, time.Minute, r.Elapsed)
}

// Requests of net/http that are under way at the end of a run end with it. A Close and a deadline return then, because net/http calls Close
// while it holds a mutex, and runs without end if it does not return.
func TestGuestRequestsUnderWay(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	simulation.Calm(t)
	for range 3 { // a guest that runs on would disturb the next run
		r := simulation.RunGuests(t, simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
			w.Node("s").Start(func(ctx context.Context, h *simulation.Host) {
				l, _ := h.Listen("tcp", ":80")
				_ = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
			})
			for range 2 {
				w.Node("c").Start(func(ctx context.Context, h *simulation.Host) {
					client := &http.Client{Transport: &http.Transport{DialContext: h.Dial}}
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://s/", http.NoBody)
					if res, err := client.Do(r); err == nil {
						_ = res.Body.Close()
					}
				})
			}
			time.Sleep(time.Second)
			return errOdd
		})
		require.Equal(t, errOdd, r.Err)
		require.Less(t, r.Windows, 1000)
	}
}

// A guest that runs without end after the end of the run is reported for this run, after the error of the run.
func TestGuestRunsOn(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	*simulation.BusyAfter = 200 * time.Millisecond
	var stop atomic.Bool
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
			for <-ctx.Done(); !stop.Load(); {
			}
		})
		time.Sleep(time.Second)
		return errOdd
	})
	stop.Store(true)
	require.ErrorIs(t, r.Err, errOdd)
	require.ErrorIs(t, r.Err, simulation.ErrBusy)
	require.Regexp(t, `(?s)^odd\n\nafter the end of the run: .*guest_ends_test.go`, r.Err.Error())
}

// outsideChannel was made outside of all runs.
var outsideChannel = make(chan int)

// A guest that waits for a variable of a package stops the clock of package time, which is an error that names the place. With the overlay
// the clock continues.
func TestGuestWaitsForAPackage(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	end := time.Duration(0)
	r := guests(t, func(ctx context.Context, w *simulation.World) error {
		begun := time.Now()
		w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
			select {
			case <-outsideChannel:
			case <-ctx.Done():
			}
		})
		_ = w.Go(func() { // has timers of the World, as a nemesis
			for range 5000 {
				_ = suspend.Sleep(context.Background(), time.Second)
			}
		})
		time.Sleep(time.Hour)
		end = time.Since(begun)
		return nil
	})
	if simulation.Nodes() {
		require.NoError(t, r.Err)
		require.Equal(t, time.Hour, end)
		require.Zero(t, r.Ahead)
		return
	}
	require.ErrorIs(t, r.Err, simulation.ErrStuck)
	require.ErrorContains(t, r.Err, "the clock of package time stands still, because a guest waits at")
	require.Regexp(t, `waits at .*guest_ends_test.go:\d+ for a channel`, r.Err.Error())
	require.Less(t, r.Elapsed, time.Hour)
}

// The local zone of a run is UTC, whatever the machine's is. A process of its own runs the test in another zone.
func TestGuestZone(t *testing.T) {
	const variable = "BRAID_ZONE"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), "TZ=Asia/Tokyo", variable+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return
	}
	_, offset := time.Now().Zone()
	require.Equal(t, 9*3600, offset, "the zone of the machine")
	r := guests(t, func(context.Context, *simulation.World) error {
		if name, offset := time.Now().Zone(); name != "UTC" || offset != 0 {
			return errOdd
		}
		return nil
	})
	require.NoError(t, r.Err)
}

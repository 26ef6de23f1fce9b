package simulation_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/simulation"
)

type locked struct{ mu sync.Mutex }

func (l *locked) String() string { l.mu.Lock(); defer l.mu.Unlock(); return "locked" }

type asks struct{ n *simulation.Node }

func (a asks) String() string { return fmt.Sprint(a.n.Crashed()) }

// Each of these programs must end. They cover cases in which guests could hang or run for ever.
func TestGuestRuns(t *testing.T) {
	if child, _ := apart(t, false); !child {
		return
	}
	defer func(b int) { *simulation.CollectOver = b }(*simulation.CollectOver)
	*simulation.CollectOver = 16 << 20
	onNode := func(w *simulation.World, name string, f func(h *simulation.Host)) <-chan bool {
		done := make(chan bool)
		w.Node(name).Start(func(_ context.Context, h *simulation.Host) { defer close(done); f(h) })
		return done
	}
	crashed := func(call func(h *simulation.Host)) func(ctx context.Context, w *simulation.World) error {
		return func(_ context.Context, w *simulation.World) error { // in the window of the call
			a := onNode(w, "a", func(h *simulation.Host) { time.Sleep(time.Second); call(h) })
			n := w.Node("a")
			b := onNode(w, "b", func(*simulation.Host) { time.Sleep(time.Second); n.Crash() })
			if <-b; !simulation.Nodes() { // with nodes, the guest never runs again
				<-a
			}
			return nil
		}
	}
	of := t
	zombie := func(call func(h *simulation.Host)) func(ctx context.Context, w *simulation.World) error {
		return func(_ context.Context, w *simulation.World) error {
			var calls atomic.Int64
			w.Node("a").Start(func(ctx context.Context, h *simulation.Host) {
				for <-ctx.Done(); calls.Load() < 100_000; calls.Add(1) {
					call(h)
				}
			})
			time.Sleep(time.Second)
			w.Node("a").Crash()
			time.Sleep(time.Second)
			if n := calls.Load(); n > 3000 {
				return fmt.Errorf("%d calls", n)
			}
			return nil
		}
	}
	dial := func(h *simulation.Host) { _, _ = h.Dial(context.Background(), "tcp", "b:1") }
	listen := func(h *simulation.Host) { _, _ = h.Listen("tcp", ":1") }
	create := func(h *simulation.Host) { _, _ = h.FS().Create("x") }
	leapDay := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		o    simulation.Options
		err  error
		main func(ctx context.Context, w *simulation.World) error
	}{
		"a deadline is taken back in its window": {main: func(_ context.Context, w *simulation.World) error {
			c, s := pipe(w)
			go func() { time.Sleep(time.Minute); _, _ = s.Write([]byte("xx")) }()
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_ = c.SetReadDeadline(time.Time{})
			_, err := c.Read(make([]byte, 1))
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			_ = c.SetReadDeadline(time.Unix(1, 0))
			_, late := c.Read(make([]byte, 1))
			if err == nil && !errors.Is(late, os.ErrDeadlineExceeded) {
				err = fmt.Errorf("no deadline: %w", late)
			}
			return err
		}},
		"a crash in the window of a Dial":   {main: crashed(dial)},
		"a crash in the window of a Create": {main: crashed(create)},
		"a guest of a dead Host dials on":   {main: zombie(dial)},
		"a guest of a dead Host listens on": {main: zombie(listen)},
		"a guest asks without end": {simulation.Options{MaxSteps: 1000}, simulation.ErrSteps, func(_ context.Context, w *simulation.World) error {
			for !w.Node("a").Crashed() {
			}
			return nil
		}},
		"MaxTime in a long sleep": {simulation.Options{MaxTime: time.Minute}, simulation.ErrTime, func(context.Context, *simulation.World) error { time.Sleep(time.Hour); return nil }},
		"Start": {o: simulation.Options{Start: leapDay}, main: func(context.Context, *simulation.World) error {
			if !time.Now().Equal(leapDay) {
				return errOdd
			}
			return nil
		}},
		"Guests and Bubble": {o: simulation.Options{Bubble: true}, main: func(context.Context, *simulation.World) error { time.Sleep(time.Minute); return nil }},
		"a String in a Log locks, and calls the World": {main: func(_ context.Context, w *simulation.World) error {
			c, _ := pipe(w)
			var l locked
			go func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				time.Sleep(time.Second)
				runtime.Gosched()
				_, _ = c.Write([]byte("x"))
			}()
			time.Sleep(time.Second)
			w.Log("%v %v", &l, asks{w.Node("a")})
			return nil
		}},
		"signals, and the context of the test": {main: func(context.Context, *simulation.World) error {
			ctx, stop := signal.NotifyContext(of.Context(), syscall.SIGTERM)
			defer stop()
			ctx, end := context.WithTimeout(ctx, time.Second)
			defer end()
			<-ctx.Done()
			return nil
		}},
		"garbage between two collections": {main: func(_ context.Context, w *simulation.World) error {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range 500 {
				w.Log("%d", len(make([]byte, 1<<18)))
				time.Sleep(time.Nanosecond)
			}
			if runtime.ReadMemStats(&after); after.NumGC-before.NumGC < 2 {
				return fmt.Errorf("%d collections of 128 MB", after.NumGC-before.NumGC)
			}
			return nil
		}},
		"a guest recovers a panic": {main: func(context.Context, *simulation.World) (err error) {
			defer func() {
				if _, ok := recover().(runtime.Error); !ok {
					err = errOdd
				}
			}()
			return errors.New((*locked)(nil).String())
		}},
		"a name is looked up": {main: func(ctx context.Context, w *simulation.World) error {
			want := "a World has no DNS"
			if simulation.Nodes() { // package net is then that of a node
				want = "main has no network"
			}
			if _, err := net.LookupHost("server.invalid"); err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("looked up: %w", err)
			}
			return nil
		}},
		"a guest collects garbage": {main: func(_ context.Context, w *simulation.World) error {
			keep := make([]*int, 0, 1<<18)
			for i := range cap(keep) {
				keep = append(keep, &i)
			}
			for range 10 {
				time.Sleep(time.Second)
				runtime.GC()
			}
			runtime.KeepAlive(keep)
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			simulation.Calm(t)
			of = t
			c.o.Seed = 1
			for range 2 {
				r := simulation.RunGuests(t, c.o, c.main)
				require.ErrorIs(t, r.Err, c.err)
				require.Zero(t, r.Ahead)
			}
		})
	}
}

// TestGuestFails fails. TestGuestMessages runs it in other processes.
func TestGuestFails(t *testing.T) {
	how := os.Getenv("BRAID_GUEST_FAILS")
	if how == "" {
		return
	}
	var never atomic.Bool
	*simulation.BusyAfter = 200 * time.Millisecond
	simulation.Test(t, func(_ context.Context, w *simulation.World) error {
		fmt.Println("a run")
		switch how {
		case "busy":
			w.Node("a").Start(func(context.Context, *simulation.Host) {
				for !never.Load() {
				}
			})
		case "native":
			_ = w.Go(func() { <-make(chan int) })
		case "error":
			return errOdd
		case "fatal":
			t.Fatalf("a check")
		}
		time.Sleep(time.Hour)
		return nil
	}, simulation.TestOptions{Seeds: 1, InProcess: true, Options: simulation.Options{Guests: true}})
}

// The table has the output of Test for a guest that never ends, after which the World does not run again, for a task that stops
// the World, for an error, and for t.Fatalf.
func TestGuestMessages(t *testing.T) {
	for how, want := range map[string]struct {
		runs int
		text []string
	}{
		"busy":   {1, []string{"busy: a guest runs without end", "guests of a:", "guests at level"}},
		"native": {1, []string{"simulation: seed 1: a task, a callback or a function of Always blocks natively"}},
		"fatal":  {2, []string{"seed 1 has failed, and runs again for its trace", "seed 1: main or a callback ended by runtime.Goexit", "The end of its trace"}},
		"error":  {2, []string{"seed 1: odd", "BRAID_SEED=1 go test", "BRAID_RANDOM=1", "guests at level"}},
	} {
		t.Run(how, func(t *testing.T) {
			c := exec.Command(os.Args[0], "-test.run=^TestGuestFails$", "-test.v", "-test.timeout=60s")
			c.Env = append(os.Environ(), "BRAID_GUEST_FAILS="+how)
			out, err := c.StdoutPipe()
			require.NoError(t, err)
			c.Stderr = c.Stdout
			require.NoError(t, c.Start())
			text := ""
			for lines := bufio.NewScanner(out); lines.Scan() && (how != "native" || !strings.Contains(text, want.text[0])); {
				text += lines.Text() + "\n"
			}
			_ = c.Process.Kill() // ends the process if it is blocked
			_ = c.Wait()
			require.Equal(t, want.runs, strings.Count(text, "a run\n"), text)
			for _, s := range want.text {
				require.Contains(t, text, s)
			}
		})
	}
}

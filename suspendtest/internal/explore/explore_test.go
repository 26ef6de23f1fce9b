package explore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

var bg = context.Background()

var all = explore.Config{Preemptions: explore.Unlimited, Cancellations: explore.Unlimited, Steps: 1000}

func TestFailures(t *testing.T) {
	runs := 0
	for name, c := range map[string]struct {
		program func(w *explore.World)
		reason  string // the beginning of the reason
	}{
		"deadlock": {func(w *explore.World) {
			x, y := mvar.New[int](), mvar.New[int]()
			w.Go("x", func(context.Context) { _, _ = x.Take(bg); _ = y.Put(bg, 1) })
			w.Go("y", func(context.Context) { _, _ = y.Take(bg); _ = x.Put(bg, 1) })
		}, "deadlock: x waits to be resumed, y waits to be resumed"},
		"livelock": {func(w *explore.World) {
			w.Go("x", func(context.Context) {
				for {
					suspend.Yield()
				}
			})
		}, "livelock: the run has not ended after 1000 steps"},
		"panic": {func(w *explore.World) {
			w.Go("x", func(context.Context) { panic("ouch") })
			w.Go("y", func(ctx context.Context) { _ = suspend.Err(ctx) })
		}, "x panics: ouch"},
		"exit": {func(w *explore.World) {
			w.Go("x", func(context.Context) { runtime.Goexit() })
		}, "x has called runtime.Goexit"},
		"check": {func(w *explore.World) {
			order := ""
			for _, name := range []string{"x", "y", "z"} {
				w.Go(name, func(context.Context) { order += name })
			}
			w.Check(func() error {
				if order == "zyx" {
					return errors.New(order)
				}
				return nil
			})
		}, "check: zyx"},
		"idle": {func(w *explore.World) {
			m := mvar.New[int]()
			w.Go("x", func(ctx context.Context) { _, _ = m.Take(ctx) })
			w.OnIdle(func(waiting []string) error { return errors.New(strings.Join(waiting, "")) })
		}, "while x wait: x"},
		"another program each time": {func(w *explore.World) {
			runs++
			for range 2 + runs%2 {
				w.Go("x", func(context.Context) {})
			}
		}, "the choices differ from those of the first run"},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Run(all, c.program)
			if r.Failure == nil || !strings.HasPrefix(r.Failure.Reason, c.reason) {
				t.Fatalf("%d runs, %v, want %s", r.Executions, r.Failure, c.reason)
			}
			if strings.HasPrefix(c.reason, "the choices differ") {
				return
			}
			if n := len(r.Failure.Trace); n > 201 {
				t.Errorf("a story of %d lines", n)
			}
			if last := r.Failure.Trace[len(r.Failure.Trace)-1]; !strings.Contains(last, "FAILED") {
				t.Errorf("the trace ends with %s", last)
			}
			again := explore.Run(explore.Config{Steps: all.Steps, Replay: r.Failure.Replay}, c.program)
			if again.Executions != 1 || again.Failure == nil || !strings.HasPrefix(again.Failure.Reason, c.reason) || again.Failure.Replay != r.Failure.Replay {
				t.Errorf("replayed: %v, want %v", again.Failure, r.Failure)
			}
		})
	}
}

// Three tasks with two steps each have 6!/(2!2!2!) orders of their steps.
func TestAllOrders(t *testing.T) {
	orders := map[string]bool{}
	r := explore.Run(all, func(w *explore.World) {
		order := ""
		for _, name := range []string{"x", "y", "z"} {
			w.Go(name, func(context.Context) {
				order += name
				_, _ = suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) { return 0, !r.Resume(0, nil) })
				order += name
			})
		}
		w.Check(func() error { orders[order] = true; return nil })
	})
	if r.Failure != nil || !r.Exhausted {
		t.Fatal(r)
	}
	// A task that was resumed before it parks does not wait.
	if len(orders) != 6 {
		t.Errorf("%d orders", len(orders))
	}
}

// A task that yields in a loop lets others run until its condition is true.
func TestYieldEnds(t *testing.T) {
	orders := map[string]bool{}
	r := explore.Run(all, func(w *explore.World) {
		ready, order := 0, ""
		for _, name := range []string{"x", "y"} {
			w.Go(name, func(context.Context) {
				for ready < 2 {
					suspend.Yield()
				}
				order += name
			})
		}
		for range 2 {
			w.Go("z", func(context.Context) { suspend.Yield(); ready++ })
		}
		w.Check(func() error { orders[order] = true; return nil })
	})
	if r.Failure != nil || !r.Exhausted {
		t.Fatal(r.Failure)
	}
	if len(orders) != 2 {
		t.Errorf("%v", orders)
	}
}

// Contexts are cancelled where this makes a difference, and when all tasks wait.
func TestCancellations(t *testing.T) {
	for bound, want := range map[int]string{explore.Unlimited: "taken kept none", 1: "taken kept none", 0: "taken"} {
		seen := map[string]bool{}
		c := all
		c.Cancellations = bound
		r := explore.Run(c, func(w *explore.World) {
			m := mvar.New[int]()
			var take, put error
			w.Go("x", func(ctx context.Context) { _, take = m.Take(ctx) })
			w.Go("y", func(ctx context.Context) { put = m.Put(ctx, 1) })
			w.Check(func() error {
				_, kept := m.TryTake()
				switch {
				case take == nil && put == nil && !kept:
					seen["taken"] = true
				case take != nil && put == nil && kept:
					seen["kept"] = true
				case take != nil && put != nil && !kept:
					seen["none"] = true
				default:
					return errors.New("lost or doubled")
				}
				return nil
			})
		})
		if r.Failure != nil || !r.Exhausted {
			t.Fatal(r.Failure)
		}
		for _, s := range strings.Fields(want) {
			if !seen[s] {
				t.Errorf("with %d cancellations, never %s", bound, s)
			}
		}
		if len(seen) != len(strings.Fields(want)) {
			t.Errorf("with %d cancellations: %v", bound, seen)
		}
	}
}

// A deadline may pass at any time, and Park may return for no reason.
func TestDeadlinesAndSpuriousReturns(t *testing.T) {
	for spurious, want := range map[int]int{0: 2, 1: 3} {
		seen := map[string]bool{}
		c := all
		c.Spurious = spurious
		r := explore.Run(c, func(w *explore.World) {
			m := mvar.New[int]()
			soon := w.Deadline()
			w.Go("take", func(context.Context) {
				_, err := m.Take(soon)
				seen[fmt.Sprint(err)] = true
			})
			w.Go("park", func(context.Context) {
				me, woken := suspend.Current(), false
				_ = suspend.Here().Go(func() { woken = true; me.Unpark() })
				if me.Park(); !woken {
					seen["woken without an Unpark"] = true
				}
				_ = m.Put(bg, 1)
			})
		})
		if r.Failure != nil || !r.Exhausted || len(seen) != want {
			t.Errorf("%d spurious returns: seen %v, %v", spurious, seen, r.Failure)
		}
	}
}

func TestReplayStrings(t *testing.T) {
	for _, s := range []string{"0", "0.0", "-1.0.0", "0.0.0.0", "0.0.A", "x.0.0", "99999999999.0.", "é"} {
		c := all
		c.Replay = s
		r := explore.Run(c, func(w *explore.World) { t.Error("run") })
		if r.Failure == nil || r.Failure.Reason != "explore: not a replay string" {
			t.Errorf("%q: %v", s, r.Failure)
		}
	}
	c := all
	c.Replay = "*.*.5"
	r := explore.Run(c, func(w *explore.World) {
		w.Go("x", func(context.Context) {})
		w.Go("y", func(context.Context) {})
	})
	if r.Failure == nil || !strings.HasPrefix(r.Failure.Reason, "the choices differ") {
		t.Errorf("%v", r.Failure)
	}
}

// Tasks that are left at the end of a run exit. If they panicked instead, a recover of the program would see the panic.
func TestATaskThatIsLeftBehindDoesNotPanic(t *testing.T) {
	ended := 0
	r := explore.Run(all, func(w *explore.World) {
		m := mvar.New[int]()
		w.Go("wait", func(context.Context) {
			defer func() {
				ended++
				if v := recover(); v != nil {
					t.Errorf("%v", v)
				}
			}()
			_, _ = m.Take(bg)
		})
	})
	if r.Failure == nil || ended == 0 {
		t.Errorf("%v, ended %d times", r.Failure, ended)
	}
}

package suspendtest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	idling "github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// A later cancellation can hide a lost wake-up, because it also ends the wait. The search without cancellations finds it.
func TestALostWakeUpIsNotHidden(t *testing.T) {
	forgets := func(w *suspendtest.World) {
		b := new(Box)
		w.Go("taker", func(ctx context.Context) { _, _ = b.Take(ctx) })
		w.Go("putter", func(context.Context) {
			b.guard.Lock()
			defer b.guard.Unlock()
			b.full, b.value = true, 7 // does not wake a waiting taker
		})
	}
	if text := explored(t, forgets, suspendtest.ExploreOptions{}); !strings.Contains(text, ", without a cancellation, has failed: deadlock: taker waits to be resumed") {
		t.Error(text)
	}
	if text := explored(t, forgets, suspendtest.ExploreOptions{UntilCancelled: true}); !strings.HasSuffix(text, "all of them") {
		t.Error(text)
	}
}

// Both searches can repeat a run from its replay string.
func TestReplays(t *testing.T) {
	for want, program := range map[string]func(w *suspendtest.World){
		"check: put once, found 0 times": func(w *suspendtest.World) { takeAndPut(new(Box))(w) },
		"deadlock: taker waits to be resumed": func(w *suspendtest.World) {
			w.Go("taker", func(ctx context.Context) { _, _ = new(mvar.MVar[int]).Take(ctx) })
		},
	} {
		text := explored(t, program, suspendtest.ExploreOptions{})
		choices := regexp.MustCompile(`replay: (\S+)`).FindStringSubmatch(text)
		if !strings.Contains(text, want) || choices == nil {
			t.Fatal(text)
		}
		_, failure, _ := strings.Cut(text, "has failed")
		t.Run(want, func(t *testing.T) {
			t.Setenv("BRAID_REPLAY", choices[1])
			if again := explored(t, program, suspendtest.ExploreOptions{}); again != "the run has failed"+failure {
				t.Errorf("%s, want %s", again, failure)
			}
		})
	}
}

// If a bound has left out runs, the report names this bound, and no other.
func TestBoundsAreNamed(t *testing.T) {
	var m mutex.Mutex
	lock := func(ctx context.Context) {
		if m.LockContext(ctx) == nil {
			m.Unlock()
		}
	}
	tasks := func(n int, f func(ctx context.Context)) func(w *suspendtest.World) {
		return func(w *suspendtest.World) {
			for range n {
				w.Go("task", func(ctx context.Context) { f(ctx); f(ctx) })
			}
		}
	}
	choice := func(context.Context) {
		_, _ = suspend.Select(context.Background(), suspend.CaseOf(mvar.NewFull(1).TakeOp()), suspend.CaseOf(mvar.NewFull(2).TakeOp()))
	}
	for _, c := range []struct {
		program func(w *suspendtest.World)
		opts    suspendtest.ExploreOptions
		want    string
	}{
		{tasks(2, lock), suspendtest.ExploreOptions{}, "all of them"},
		{tasks(2, func(context.Context) {
			if m.TryLock() {
				m.Unlock()
			}
		}), suspendtest.ExploreOptions{}, "all of them"},
		{tasks(2, lock), suspendtest.ExploreOptions{Preemptions: 1}, "all but those with more preemptions than 1"},
		{tasks(2, lock), suspendtest.ExploreOptions{Waits: true}, "all of them"},
		{tasks(2, lock), suspendtest.ExploreOptions{Cancellations: 1}, "all but those with more cancellations"},
		{tasks(2, lock), suspendtest.ExploreOptions{Executions: 3}, "and there are more"},
		{tasks(3, func(context.Context) { suspend.Yield() }), suspendtest.ExploreOptions{Yields: 1}, "all but those with more yields of a task while another could run"},
		{tasks(3, func(context.Context) { suspend.Yield() }), suspendtest.ExploreOptions{}, "all of them"},
		{tasks(2, choice), suspendtest.ExploreOptions{}, "all but those with other random choices, such as those of Select"},
	} {
		if text := explored(t, c.program, c.opts); !strings.HasSuffix(text, c.want) {
			t.Errorf("%s, want %s", text, c.want)
		}
	}
}

// explored returns the report of Explore.
func explored(t *testing.T, program func(w *suspendtest.World), o suspendtest.ExploreOptions) string {
	heard := &hearing{TB: t}
	suspendtest.Explore(heard, program, o)
	return heard.text
}

type hearing struct {
	testing.TB
	text string
}

func (h *hearing) Errorf(format string, args ...any) { h.text = fmt.Sprintf(format, args...) }
func (h *hearing) Logf(format string, args ...any)   { h.text = fmt.Sprintf(format, args...) }

// Tasks derive contexts from their own, and cancel others. The report names a wait with a context of package context.
func TestContexts(t *testing.T) {
	const all, named = ", all of them", ", all but those with other turns at contexts of package context"
	seen := map[string]bool{}
	task := func(f func(ctx context.Context)) func(w *suspendtest.World) {
		return func(w *suspendtest.World) { w.Go("task", f) }
	}
	beside := func(looks func(ctx context.Context, g *idling.Group, filled string)) func(w *suspendtest.World) {
		return func(w *suspendtest.World) {
			p, g := promise.New[int](), idling.New(suspend.Goroutines, nil)
			ctx, stop := cancel.New(context.Background())
			w.Go("looks", func(context.Context) {
				_, filled, _ := p.Try()
				looks(ctx, g, fmt.Sprint("filled ", filled))
			})
			w.Go("cancels", func(context.Context) { _ = p.Fill(1); stop(nil) })
		}
	}
	const beside35 = "explored: 35 runs" + all // a wait looks at its context in a turn of its own: 7!/(4!3!)
	const beside20 = "explored: 20 runs" + all // two tasks with three turns each: 6!/(3!3!)
	for name, p := range map[string]struct {
		program func(w *suspendtest.World)
		want    string
	}{
		// Package context holds a lock while it calls the AfterFunc of a parent, and also during a cancellation.
		"WithCancel": {task(func(ctx context.Context) { ctx, stop := context.WithCancel(ctx); defer stop(); _ = ctx.Err() }), all},
		"cancel.New": {task(func(ctx context.Context) { ctx, stop := cancel.New(ctx); defer stop(nil); _ = ctx.Err() }), all},
		"scope.Run": {task(func(ctx context.Context) {
			_ = scope.Run(ctx, func(context.Context, *scope.Scope) error { return nil })
		}), all},
		"an operation": {beside(func(ctx context.Context, _ *idling.Group, filled string) {
			m := new(mutex.Mutex)
			seen[fmt.Sprint("lock, ", filled, ": ", m.LockContext(ctx))] = true
		}), beside35},
		"Err": {beside(func(ctx context.Context, _ *idling.Group, filled string) {
			seen[fmt.Sprint("look, ", filled, ": ", ctx.Err())] = true
		}), beside20},
		"Done": {beside(func(ctx context.Context, _ *idling.Group, _ string) { ctx.Done() }), beside20},
		"Idle": {beside(func(_ context.Context, g *idling.Group, _ string) { g.Idle() }), beside20},
		"Live": {beside(func(_ context.Context, g *idling.Group, _ string) { g.Live() }), beside20},
		"a wait with package context": {func(w *suspendtest.World) {
			m := new(mutex.Mutex)
			ctx, stop := context.WithCancel(context.Background())
			_ = m.LockContext(ctx)
			w.Go("locks", func(context.Context) { seen[fmt.Sprint("wait: ", m.LockContext(ctx))] = true })
			w.Go("cancels", func(context.Context) { stop() })
			w.Go("frees", func(context.Context) { m.Unlock() })
		}, named},
	} {
		if text := explored(t, p.program, suspendtest.ExploreOptions{}); !strings.HasSuffix(text, p.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, order := range []string{"lock, filled true: <nil>", "look, filled true: <nil>", "look, filled false: context canceled", "wait: <nil>", "wait: context canceled"} {
		if !seen[order] {
			t.Error(order, "is left out")
		}
	}
}

// In each run, the clock begins at the same time, and only timers move it. So a wait for a rate ends.
func TestRates(t *testing.T) {
	text := explored(t, func(w *suspendtest.World) {
		l := rate.NewLimiter(rate.Every(time.Second), 1)
		for i := range 2 {
			w.Go(fmt.Sprint(i), func(ctx context.Context) {
				now := suspend.Now()
				switch err := l.Wait(ctx); {
				case now.Year() != 2000:
					panic(now)
				case err == nil && suspend.Now().Sub(now) > time.Second:
					panic(suspend.Now())
				}
			})
		}
	}, suspendtest.ExploreOptions{Preemptions: 1})
	require.Regexp(t, "^explored: .* runs, all but those with more preemptions than 1", text)
}

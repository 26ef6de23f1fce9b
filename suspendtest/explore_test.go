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

// A wake-up that is lost is hidden by a context that can be cancelled later: the search without cancellations shows it.
func TestALostWakeUpIsNotHidden(t *testing.T) {
	forgets := func(w *suspendtest.World) {
		b := new(Box)
		w.Go("taker", func(ctx context.Context) { _, _ = b.Take(ctx) })
		w.Go("putter", func(context.Context) {
			b.guard.Lock()
			defer b.guard.Unlock()
			b.full, b.value = true, 7 // and a taker that waits is not woken
		})
	}
	if text := explored(t, forgets); !strings.Contains(text, ", without a cancellation, has failed: deadlock: taker waits to be resumed") {
		t.Error(text)
	}
	if text := explored(t, forgets, suspendtest.UntilCancelled()); !strings.HasSuffix(text, "which are all") {
		t.Error(text)
	}
}

// A run of either search is made again by its string.
func TestReplays(t *testing.T) {
	for want, program := range map[string]func(w *suspendtest.World){
		"check: put once, found 0 times": func(w *suspendtest.World) { takeAndPut(new(Box))(w) },
		"deadlock: taker waits to be resumed": func(w *suspendtest.World) {
			w.Go("taker", func(ctx context.Context) { _, _ = new(mvar.MVar[int]).Take(ctx) })
		},
	} {
		text := explored(t, program)
		choices := regexp.MustCompile(`replay: (\S+)`).FindStringSubmatch(text)
		if !strings.Contains(text, want) || choices == nil {
			t.Fatal(text)
		}
		_, failure, _ := strings.Cut(text, "has failed")
		t.Run(want, func(t *testing.T) {
			t.Setenv("BRAID_REPLAY", choices[1])
			if again := explored(t, program); again != "the run has failed"+failure {
				t.Errorf("%s, want %s", again, failure)
			}
		})
	}
}

// A bound that has left out runs is named, and no other is.
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
		opts    []suspendtest.ExploreOption
		want    string
	}{
		{tasks(2, lock), nil, "which are all"},
		{tasks(2, func(context.Context) {
			if m.TryLock() {
				m.Unlock()
			}
		}), nil, "which are all"},
		{tasks(2, lock), []suspendtest.ExploreOption{suspendtest.Preemptions(1)}, "which are all but those with more preemptions than 1"},
		{tasks(2, lock), []suspendtest.ExploreOption{suspendtest.Waits()}, "which are all"},
		{tasks(2, lock), []suspendtest.ExploreOption{suspendtest.Cancellations(1)}, "which are all but those with more cancellations"},
		{tasks(2, lock), []suspendtest.ExploreOption{suspendtest.Executions(3)}, "and there are more"},
		{tasks(3, func(context.Context) { suspend.Yield() }), []suspendtest.ExploreOption{suspendtest.Yields(1)}, "which are all but those with more yields of a task while another could run"},
		{tasks(3, func(context.Context) { suspend.Yield() }), nil, "which are all"},
		{tasks(2, choice), nil, "which are all but those with other random choices, such as those of Select"},
	} {
		if text := explored(t, c.program, c.opts...); !strings.HasSuffix(text, c.want) {
			t.Errorf("%s, want %s", text, c.want)
		}
	}
}

// explored is what Explore says.
func explored(t *testing.T, program func(w *suspendtest.World), opts ...suspendtest.ExploreOption) string {
	heard := &hearing{TB: t}
	suspendtest.Explore(heard, program, opts...)
	return heard.text
}

type hearing struct {
	testing.TB
	text string
}

func (h *hearing) Errorf(format string, args ...any) { h.text = fmt.Sprintf(format, args...) }
func (h *hearing) Logf(format string, args ...any)   { h.text = fmt.Sprintf(format, args...) }

// Contexts that a task derives from its own, and those that the program cancels. A wait with one of package context is named.
func TestContexts(t *testing.T) {
	const all, named = ", which are all", ", which are all but those with other turns at contexts of package context"
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
	const beside20 = "explored: 20 runs" + all // each of two tasks has three turns: 6!/(3!3!)
	for name, p := range map[string]struct {
		program func(w *suspendtest.World)
		want    string
	}{
		// Package context calls an AfterFunc of its parent under a lock, which the cancellation takes.
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
		if text := explored(t, p.program); !strings.HasSuffix(text, p.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, order := range []string{"lock, filled true: <nil>", "look, filled true: <nil>", "look, filled false: context canceled", "wait: <nil>", "wait: context canceled"} {
		if !seen[order] {
			t.Error(order, "is left out")
		}
	}
}

// The clock of the tasks begins at the same time in each run, and only timers move it. So what waits for a rate comes to its end.
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
	}, suspendtest.Preemptions(1))
	require.Regexp(t, "^explored: .* runs, which are all but those with more preemptions than 1", text)
}

package suspendtest_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
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
		if again := explored(t, program, suspendtest.Replay(choices[1])); again != "the run has failed"+failure {
			t.Errorf("%s, want %s", again, failure)
		}
	}
}

// A bound that has left out runs is named, and no other is.
func TestBoundsAreNamed(t *testing.T) {
	var m mutex.Mutex
	lock := func(ctx context.Context) {
		if m.Lock(ctx) == nil {
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
		_, _ = suspend.Select(context.Background(), suspend.On(mvar.NewFull(1).TakeOp()), suspend.On(mvar.NewFull(2).TakeOp()))
	}
	for _, c := range []struct {
		program func(w *suspendtest.World)
		opts    []suspendtest.ExploreOption
		want    string
	}{
		{tasks(2, lock), nil, "which are all"},
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

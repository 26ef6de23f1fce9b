package explore_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// A task that blocks natively fails the run. The failure names the task, its line, and the tasks that may hold what it waits for.
func TestNativeWaitsAreFound(t *testing.T) {
	const waits, holds = " makes no progress: it blocks natively (sync.Mutex.Lock) at watch_test.go:", "probably holds what it waits for: a at watch_test.go:"
	for name, c := range map[string]struct {
		program func(w *explore.World)
		points  bool
		want    []string
	}{
		"a lock of package sync, at a point": {func(w *explore.World) {
			var mu sync.Mutex
			var m mutex.Mutex
			for _, name := range []string{"a", "b"} {
				w.Go(name, func(context.Context) { mu.Lock(); m.Lock(); m.Unlock(); mu.Unlock() })
			}
		}, true, []string{"b" + waits, holds, "ExploreOptions.Waits"}},
		"a lock of package sync, at a wait": {func(w *explore.World) {
			var mu sync.Mutex
			empty := mvar.New[int]()
			w.Go("a", func(context.Context) { mu.Lock(); _, _ = empty.Take(bg); mu.Unlock() })
			w.Go("b", func(context.Context) { mu.Lock(); _ = empty.Put(bg, 1); mu.Unlock() })
		}, false, []string{"b" + waits, holds}},
		"a Guard under a Guard": {func(w *explore.World) {
			var g, h suspend.Guard
			n := 0
			w.Go("a", func(context.Context) { g.Lock(); h.Lock(); n++; h.Unlock(); g.Unlock() })
			w.Go("b", func(context.Context) { g.Lock(); n++; g.Unlock() })
		}, true, []string{"b" + waits, holds, "or a Guard, at a point where"}},
		"a channel": {func(w *explore.World) {
			w.Go("a", func(context.Context) { <-make(chan int) })
		}, false, []string{"a makes no progress: it blocks natively (chan receive) at watch_test.go:"}},
		"in a Check": {func(w *explore.World) {
			var mu sync.Mutex
			w.Go("a", func(context.Context) { mu.Lock() })
			w.Check(func() error { mu.Lock(); defer mu.Unlock(); return nil })
		}, false, []string{"the program" + waits}},
	} {
		t.Run(name, func(t *testing.T) {
			r := explore.Run(explore.Config{Points: c.points, Yields: 1, Preemptions: explore.Unlimited, Stall: 50 * time.Millisecond}, c.program)
			if r.Failure == nil {
				t.Fatal("not found")
			}
			for _, want := range c.want {
				if !strings.Contains(r.Failure.Reason, want) {
					t.Errorf("%s, want %s", r.Failure.Reason, want)
				}
			}
			if text := r.Failure.Error(); !strings.Contains(text, "begins") || !strings.Contains(text, "watch_test.go") {
				t.Errorf("no story and no stacks: %s", text)
			}
		})
	}
}

// A task that computes for a long time does not count as blocked.
func TestATaskThatComputesIsNoStall(t *testing.T) {
	c := all
	c.Stall = 10 * time.Millisecond
	r := explore.Run(c, func(w *explore.World) {
		w.Go("a", func(context.Context) {
			for begun := time.Now(); time.Since(begun) < 20*c.Stall; {
			}
		})
	})
	if r.Failure != nil || !r.Exhausted {
		t.Error(r.Failure)
	}
}

// A task that polls without a point ends the search with an error, although its goroutine cannot be stopped.
func TestATaskThatPolls(t *testing.T) {
	var stop atomic.Bool
	defer stop.Store(true)
	c := all
	c.Stall, c.Busy = 10*time.Millisecond, 100*time.Millisecond
	r := explore.Run(c, func(w *explore.World) {
		w.Go("polls", func(context.Context) {
			for !stop.Load() {
				runtime.Gosched()
			}
		})
	})
	if r.Failure == nil || !strings.HasPrefix(r.Failure.Reason, "polls makes no progress for 100ms: it computes, or polls in a loop without a scheduling point, at watch_test.go:") {
		t.Error(r.Failure)
	}
}

// If a program panics, or ends its goroutine, this reaches the caller of the search.
func TestTheProgramEndsTheCaller(t *testing.T) {
	defer func() {
		if v := recover(); v != "ouch" {
			t.Errorf("%v", v)
		}
	}()
	t.Run("exits", func(t *testing.T) {
		explore.Run(all, func(*explore.World) { t.SkipNow() })
		t.Error("goes on")
	})
	explore.Run(all, func(*explore.World) { panic("ouch") })
}

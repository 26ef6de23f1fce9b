package explore_test

//lint:file-ignore SA2001 the lock itself is tested, not what it protects

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

// updates adds one to a number in two tasks, with a point between load and store.
func updates(w *explore.World, check func(n int) error) {
	var m mutex.Mutex
	n := 0
	for _, name := range []string{"a", "b"} {
		w.Go(name, func(context.Context) {
			v := n
			m.Lock() // a point
			m.Unlock()
			n = v + 1
		})
	}
	w.Check(func() error { return check(n) })
}

func losing(w *explore.World) {
	updates(w, func(n int) error {
		if n == 1 {
			return errors.New("lost")
		}
		return nil
	})
}

// Random runs find a mistake at least as often as the paper states: in one of n·k^(d-1) runs, for n tasks with k turns in all,
// and the depth d.
func TestRandomRunsFind(t *testing.T) {
	const runs = 20_000
	for name, p := range map[string]struct {
		depth, tasks, turns int
		program             func(w *explore.World, found func())
	}{
		"an order of two tasks": {1, 3, 6, func(w *explore.World, found func()) {
			order := ""
			for _, name := range []string{"a", "b", "c"} {
				w.Go(name, func(context.Context) { order += name })
			}
			w.Check(func() error {
				if order[0] == 'c' {
					found()
				}
				return nil
			})
		}},
		"a lost update": {2, 2, 10, func(w *explore.World, found func()) {
			updates(w, func(n int) error {
				if n == 1 {
					found()
				}
				return nil
			})
		}},
		"a turn while another task sleeps": {1, 6, 0, func(w *explore.World, found func()) { // three pieces with a priority each: 3! orders
			order := ""
			w.Go("a", func(context.Context) { order += "a"; _ = suspend.Sleep(bg, 1); order += "a" })
			w.Go("b", func(context.Context) { order += "b" })
			w.Check(func() error {
				if order == "aba" {
					found()
				}
				return nil
			})
		}},
		"turns that alternate": {3, 2, 12, func(w *explore.World, found func()) {
			order := ""
			point := func() { _, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) { return 0, true }) }
			for _, name := range []string{"a", "b"} {
				w.Go(name, func(context.Context) {
					order += name
					point()
					order += name
				})
			}
			w.Check(func() error {
				if order == "abab" {
					found()
				}
				return nil
			})
		}},
	} {
		n := 0
		c := all
		c.Points, c.Asleep, c.Yields, c.Depth, c.Executions = true, true, 1, p.depth, runs
		r := explore.Run(c, func(w *explore.World) { p.program(w, func() { n++ }) })
		least := runs / (float64(p.tasks) * math.Pow(float64(p.turns), float64(p.depth-1)))
		if r.Failure != nil || r.Executions != runs || r.Exhausted || float64(n) < least*0.9 { // at least the mean minus four deviations
			t.Errorf("%s: found in %d of %d runs, want %.0f; %v", name, n, r.Executions, least, r.Failure)
		}
		t.Logf("%s: found in %d of %d runs, of %.0f promised", name, n, runs, least)
	}
}

// A failure of a random run can be repeated, and the runs are the same each time.
func TestARandomRunIsReplayed(t *testing.T) {
	c := all
	c.Points, c.Yields, c.Depth, c.Executions = true, 1, 2, 1000
	r := explore.Run(c, losing)
	if again := explore.Run(c, losing); r.Failure == nil || again.Executions != r.Executions || again.Failure.Error() != r.Failure.Error() {
		t.Fatalf("%v and %v", r.Failure, again.Failure)
	}
	c.Replay = r.Failure.Replay
	if again := explore.Run(c, losing); again.Executions != 1 || again.Failure == nil || again.Failure.Error() != r.Failure.Error() {
		t.Errorf("%v, want %v", again.Failure, r.Failure)
	}
}

// A point may have more alternatives than there are digits, so that the replay string needs several.
func TestAReplayOfManyTasks(t *testing.T) {
	const tasks = 75
	for _, first := range []int{34, 35, 36, 70, tasks - 1} {
		program := func(w *explore.World) {
			begun := 0
			for i := range tasks {
				w.Go("task", func(context.Context) {
					if begun++; begun == 1 && i == first {
						panic("first")
					}
				})
			}
		}
		c := all
		c.Depth, c.Executions = 1, 10_000
		r := explore.Run(c, program)
		if r.Failure == nil {
			t.Fatal("not found")
		}
		c.Replay = r.Failure.Replay
		if again := explore.Run(c, program); again.Failure == nil || again.Failure.Error() != r.Failure.Error() {
			t.Errorf("%s: %v, want %v", c.Replay, again.Failure, r.Failure)
		}
	}
}

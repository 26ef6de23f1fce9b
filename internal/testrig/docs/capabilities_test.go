package docs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/braidgo/braid/adapters/callback"
	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of capabilities and the lists of packages into the documents")

const (
	tableBegins = "<!-- written by go test ./internal/testrig/docs -update -->\n"
	tableEnds   = "<!-- end -->\n"
)

// A scheduler is a row of the table. on runs the scheduler, and calls f in a task of it with the Spawner that a user has.
type scheduler struct {
	name    string
	options any
	on      func(t *testing.T, f func(s suspend.Spawner))
}

// inTask calls f in a task of s, and blocks until the task has ended.
func inTask[S suspend.Spawner](t *testing.T, s S, f func(s suspend.Spawner)) {
	ended := make(chan struct{})
	require.NoError(t, s.Go(func() { defer close(ended); f(s) }))
	<-ended
}

type bare chan func()

func (b bare) Execute(f func()) error { b <- f; return nil }

func schedulers() []scheduler {
	inSimulation := func(part func(w *simulation.World) suspend.Spawner) func(*testing.T, func(suspend.Spawner)) {
		return func(t *testing.T, f func(suspend.Spawner)) {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				return scope.Run(ctx, func(_ context.Context, s *scope.Scope) error {
					s.Go(part(w), func(context.Context) error { f(part(w)); return nil })
					return nil
				})
			}, simulation.Options{})
			require.NoError(t, r.Err)
		}
	}
	return []scheduler{
		{"suspend.Goroutines", struct{}{}, func(t *testing.T, f func(suspend.Spawner)) { inTask(t, suspend.Goroutines, f) }},
		{"adapters/fifo", fifo.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			s := fifo.New(fifo.Options{})
			require.NoError(t, s.Run(context.Background(), func(context.Context) error { f(s); return nil }))
		}},
		{"adapters/random", random.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			s := random.New(random.Options{})
			require.NoError(t, s.Run(context.Background(), func(context.Context) error { f(s); return nil }))
		}},
		{"adapters/workstealing", workstealing.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			p := workstealing.New(workstealing.Options{Workers: 1})
			inTask(t, p, f)
			require.NoError(t, p.Close())
		}},
		{"adapters/eventloop", eventloop.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			l, err := eventloop.New(eventloop.Options{})
			require.NoError(t, err)
			inTask(t, l, f)
			require.NoError(t, l.Close())
		}},
		{"adapters/callback", callback.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			calls := make(bare, 100)
			go func() {
				for call := range calls {
					call()
				}
			}()
			l := callback.New(calls, callback.Options{})
			inTask(t, l, f)
			require.NoError(t, l.Close())
			close(calls)
		}},
		{"adapters/limited", limited.Options{}, func(t *testing.T, f func(suspend.Spawner)) {
			s := limited.New(1, limited.Options{})
			inTask(t, s, f)
			require.NoError(t, s.Close())
		}},
		{"simulation: World", simulation.Options{}, inSimulation(func(w *simulation.World) suspend.Spawner { return w })},
		{"simulation: Node", simulation.Options{}, inSimulation(func(w *simulation.World) suspend.Spawner { return w.Node("n") })},
	}
}

// A capability is a column of the table.
type capability struct {
	name string
	has  func(s suspend.Spawner) bool // is called in a task of s
}

func as[C any](s suspend.Spawner) bool {
	_, ok := suspend.As[C](s)
	return ok
}

var capabilities = []capability{
	{"`Executor`", as[suspend.Executor]},
	{"`Yield`", func(suspend.Spawner) bool {
		_, yields := suspend.Current().(interface{ Yield() })
		_, switches := suspend.Current().(sched.Switcher)
		return yields || switches
	}},
	{"`Timers`", as[sched.Timers]},
	{"`Clock`", as[sched.Clock]},
	{"`Rand`", as[sched.Rand]},
	{"`Blocker`", as[sched.Blocker]},
	{"`Holder`", as[sched.Holder]},
	{"`Watcher`", as[sched.Watcher]},
	{"`Stats`", as[interface{ Stats() sched.Stats }]},
}

// options are further columns, for fields of the Options.
var options = []string{"StallAfter", "OnPanic"}

func yes(has bool) string {
	if has {
		return "yes"
	}
	return "–"
}

// TestCapabilities compares the table of docs/choosing.md with what the schedulers have. After an intended change,
//
//	go test ./internal/testrig/docs -update
//
// writes the table. A wrapper of a scheduler must have the same capabilities.
func TestCapabilities(t *testing.T) {
	head, line := "| |", "|---|"
	for _, c := range capabilities {
		head, line = head+" "+c.name+" |", line+"---|"
	}
	for _, o := range options {
		head, line = head+" `"+o+"` |", line+"---|"
	}
	table := head + "\n" + line + "\n"
	for _, sched := range schedulers() {
		asked := 0
		sched.on(t, func(s suspend.Spawner) {
			row := "| `" + strings.Replace(sched.name, ": ", "`, `", 1) + "` |"
			err := scope.Run(context.Background(), func(_ context.Context, sc *scope.Scope) error {
				wrapped := map[string]suspend.Spawner{"scope.On": sc.On(s), "scope.Limit": scope.Limit(1, s), "idle.Group": idle.New(s, nil), "Here": suspend.Here()}
				for _, c := range capabilities {
					has := c.has(s)
					row += " " + yes(has) + " |"
					asked++
					for name, w := range wrapped {
						want := has || name == "scope.On" && c.name == "`Holder`" // for the scope itself
						if c.has(w) != want {
							t.Errorf("%s of %s: %s is %v, want %v", name, sched.name, c.name, !want, want)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			for _, o := range options {
				_, has := reflect.TypeOf(sched.options).FieldByName(o)
				row += " " + yes(has) + " |"
			}
			table += row + "\n"
		})
		require.Equal(t, len(capabilities), asked, sched.name)
	}
	text := read(t, "docs/choosing.md")
	before, rest, ok := strings.Cut(text, tableBegins)
	require.True(t, ok, "where is the table?")
	got, after, ok := strings.Cut(rest, tableEnds)
	require.True(t, ok, "the end of the table was not found")
	if *update && got != table {
		text = before + tableBegins + table + tableEnds + after
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs/choosing.md"), []byte(text), 0o644))
		got = table
	}
	require.Equal(t, table, got, fmt.Sprint("the table of docs/choosing.md differs from the code. If the change is intended, run\n\n",
		"\tgo test ./internal/testrig/docs -update\n"))
}

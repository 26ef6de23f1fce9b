package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

var bg = context.Background()

func TestMain(m *testing.M) {
	if os.Getenv("BRAID_APART") != "" { // guests may be left behind
		os.Exit(m.Run())
	}
	schedtest.Main(m)
}

// run runs main, and requires that nothing is wrong.
func run(t *testing.T, main func(ctx context.Context, w *simulation.World) error) simulation.Report {
	t.Helper()
	r := simulation.Run(main, simulation.Options{Seed: 1})
	require.NoError(t, r.Err)
	return r
}

// waitForever suspends the calling task.
func waitForever() {
	_, _ = suspend.Suspend(bg, func(suspend.Resumer[int]) (int, bool) { return 0, false })
}

func TestTimeStandsStillAndJumps(t *testing.T) {
	r := run(t, func(ctx context.Context, w *simulation.World) error {
		begin := w.Now()
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), begin)
		for range 100 {
			suspend.Yield()
		}
		require.Equal(t, begin, suspend.Now())
		require.NoError(t, suspend.Sleep(ctx, time.Hour))
		require.Equal(t, begin.Add(time.Hour), suspend.Now())
		short, end := cancel.WithTimeout(ctx, time.Minute)
		defer end()
		require.ErrorIs(t, suspend.Sleep(short, time.Hour), context.DeadlineExceeded)
		require.Equal(t, begin.Add(time.Hour+time.Minute), suspend.Now())
		return nil
	})
	require.Equal(t, time.Hour+time.Minute, r.Elapsed)
}

func TestTimersOfOneMomentFireInTheOrderInWhichTheyWereSet(t *testing.T) {
	for seed := range uint64(50) {
		var fired []int
		simulation.Run(func(ctx context.Context, w *simulation.World) error {
			for i := range 20 {
				stop := w.AfterFunc(time.Second, func() { fired = append(fired, i) })
				if i%3 == 0 {
					require.True(t, stop())
					require.False(t, stop())
				}
			}
			return suspend.Sleep(ctx, time.Second)
		}, simulation.Options{Seed: seed + 1})
		require.Len(t, fired, 13)
		require.True(t, slices.IsSorted(fired), "%v", fired)
	}
}

// Each order of three tasks occurs, about as often as any other.
func TestEachOrderIsAsLikely(t *testing.T) {
	const runs = 600
	count := map[string]int{}
	for seed := range uint64(runs) {
		var order []byte
		simulation.Run(func(ctx context.Context, w *simulation.World) error {
			for i := range 3 {
				_ = w.Go(func() { suspend.Yield(); order = append(order, byte('a'+i)) })
			}
			return suspend.Sleep(ctx, 1)
		}, simulation.Options{Seed: seed + 1})
		count[string(order)]++
	}
	require.Len(t, count, 6)
	for order, n := range count {
		require.InDelta(t, runs/6, n, runs/12, order)
	}
}

func TestMainIsTheRun(t *testing.T) {
	ended := 0
	r := run(t, func(ctx context.Context, w *simulation.World) error {
		for range 10 {
			_ = w.Go(func() { defer func() { ended++ }(); waitForever() })
			_ = w.Node("n").Go(func() { defer func() { ended++ }(); _ = suspend.Sleep(ctx, time.Hour) })
		}
		return suspend.Sleep(ctx, time.Second)
	})
	require.Equal(t, 20, ended)
	require.Equal(t, time.Second, r.Elapsed)
	boom := errors.New("boom")
	require.Equal(t, boom, simulation.Run(func(context.Context, *simulation.World) error { return boom }, simulation.Options{}).Err)
	require.NotZero(t, simulation.Run(func(context.Context, *simulation.World) error { return nil }, simulation.Options{}).Seed)
}

// When a task is ended, its deferred functions run, and those that would wait end where they wait.
func TestDefersRun(t *testing.T) {
	var seen []string
	run(t, func(ctx context.Context, w *simulation.World) error {
		_ = w.Go(func() {
			defer func() { seen = append(seen, "last") }()
			defer func() {
				seen = append(seen, "waits")
				_ = suspend.Sleep(bg, time.Second)
				seen = append(seen, "goes on")
			}()
			defer func() { seen = append(seen, fmt.Sprint(w.Go(func() {}))) }()
			waitForever()
		})
		return suspend.Sleep(ctx, time.Second)
	})
	require.Equal(t, []string{"simulation: the run is over", "waits", "last"}, seen)
}

func failing(t *testing.T, o simulation.Options, want error, main func(ctx context.Context, w *simulation.World) error) string {
	t.Helper()
	err := simulation.Run(main, o).Err
	require.ErrorIs(t, err, want)
	return err.Error()
}

func TestEndings(t *testing.T) {
	text := failing(t, simulation.Options{}, simulation.ErrDeadlock, func(ctx context.Context, w *simulation.World) error {
		_ = w.Node("server").Go(waitForever)
		var m mvar.MVar[int]
		_, err := m.Take(ctx)
		return err
	})
	require.Contains(t, text, "server#1 waits:\n")
	require.Contains(t, text, "waitForever()")
	require.Contains(t, text, "main waits:\n")
	require.NotContains(t, text, "coroswitch")

	text = failing(t, simulation.Options{MaxSteps: 1000}, simulation.ErrSteps, func(ctx context.Context, w *simulation.World) error {
		for {
			suspend.Yield()
		}
	})
	require.Contains(t, text, "main could run:\n")
	failing(t, simulation.Options{MaxSteps: 1000}, simulation.ErrSteps, func(ctx context.Context, w *simulation.World) error {
		var again func()
		again = func() { w.AfterFunc(0, again) }
		again()
		waitForever()
		return nil
	})
	failing(t, simulation.Options{MaxTime: time.Minute}, simulation.ErrTime, func(ctx context.Context, w *simulation.World) error {
		for {
			_ = suspend.Sleep(ctx, time.Second)
		}
	})
	failing(t, simulation.Options{}, simulation.ErrExited, func(ctx context.Context, w *simulation.World) error {
		runtime.Goexit()
		return nil
	})
	boom := errors.New("boom")
	for _, main := range []func(context.Context, *simulation.World) error{
		func(context.Context, *simulation.World) error { panic(boom) },
		func(ctx context.Context, w *simulation.World) error {
			_ = w.Go(func() { panic(boom) })
			return suspend.Sleep(ctx, 1)
		},
		func(ctx context.Context, w *simulation.World) error {
			_ = w.Execute(func() { panic(boom) })
			return suspend.Sleep(ctx, 1)
		},
	} {
		require.Contains(t, failing(t, simulation.Options{}, boom, main), "simulation_test.go")
		told := 0
		simulation.Run(main, simulation.Options{OnPanic: func(any, []byte) { told++ }})
		require.Equal(t, 1, told)
	}
}

func TestForeign(t *testing.T) {
	for name, call := range map[string]func(w *simulation.World, r suspend.Resumer[int]){
		"Resume":    func(_ *simulation.World, r suspend.Resumer[int]) { r.Resume(1, nil) },
		"Go":        func(w *simulation.World, _ suspend.Resumer[int]) { _ = w.Go(func() {}) },
		"AfterFunc": func(w *simulation.World, _ suspend.Resumer[int]) { w.AfterFunc(1, func() {}) },
		"Log":       func(w *simulation.World, _ suspend.Resumer[int]) { w.Log("hello") },
		"Dial":      func(w *simulation.World, _ suspend.Resumer[int]) { _, _ = w.Node("a").Dial(bg, "tcp", "a:1") },
		"Node":      func(w *simulation.World, _ suspend.Resumer[int]) { _ = w.Node("a").FS() },
		"Rand":      func(w *simulation.World, _ suspend.Resumer[int]) { w.Rand().Uint64() },
	} {
		t.Run(name, func(t *testing.T) {
			text := failing(t, simulation.Options{}, simulation.ErrForeign, func(ctx context.Context, w *simulation.World) error {
				w.Node("a")
				_, err := suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
					called := make(chan struct{})
					go func() { defer close(called); call(w, r) }()
					<-called
					return 0, false
				})
				return err
			})
			require.Contains(t, text, "TestForeign.func")
			require.Contains(t, text, "go statement")
		})
	}
}

// In a bubble, package time is virtual to the nanosecond, and so are the World's own timers.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
			begin := time.Now()
			require.Equal(t, begin.UTC(), suspend.Now().UTC())
			_ = w.Go(func() { _ = suspend.Sleep(ctx, time.Hour) })
			short, end := context.WithTimeout(ctx, time.Minute)
			defer end()
			require.ErrorIs(t, suspend.Sleep(short, 2*time.Hour), context.DeadlineExceeded)
			require.Equal(t, time.Minute, time.Since(begin))
			require.NoError(t, suspend.Sleep(ctx, time.Minute))
			require.Equal(t, 2*time.Minute, time.Since(begin))
			require.Equal(t, time.Since(begin), suspend.Now().Sub(begin))
			return nil
		}, simulation.Options{Seed: 1, Bubble: true})
		require.NoError(t, r.Err)
	})
	synctest.Test(t, func(t *testing.T) {
		failing(t, simulation.Options{Bubble: true}, simulation.ErrDeadlock, func(context.Context, *simulation.World) error { waitForever(); return nil })
		failing(t, simulation.Options{Bubble: true, MaxTime: time.Hour}, simulation.ErrDeadlock, func(context.Context, *simulation.World) error { waitForever(); return nil })
		failing(t, simulation.Options{Bubble: true, MaxTime: time.Hour}, simulation.ErrTime, func(ctx context.Context, _ *simulation.World) error {
			return suspend.Sleep(ctx, 2*time.Hour)
		})
	})
	require.ErrorContains(t, simulation.Run(nil, simulation.Options{Bubble: true, Start: time.Now()}).Err, "Start is set")
	require.ErrorContains(t, simulation.Run(func(context.Context, *simulation.World) error { return nil }, simulation.Options{Bubble: true}).Err, "not in a testing/synctest bubble")
}

// Several timers of package time are due at the same time, and wake tasks in any order, by their contexts or by Resumes. The run
// is repeatable.
func TestStockTimersOfOneMoment(t *testing.T) {
	hashes := map[uint64]bool{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				left := 10
				for range 10 {
					_ = w.Go(func() {
						short, end := context.WithTimeout(ctx, time.Minute)
						defer end()
						_, _ = suspend.Suspend(short, func(suspend.Resumer[int]) (int, bool) { return 0, false })
						_, _ = suspend.Suspend(ctx, func(r suspend.Resumer[int]) (int, bool) {
							time.AfterFunc(time.Minute, func() { r.Resume(0, nil) })
							return 0, false
						})
						left--
					})
				}
				for left > 0 {
					require.NoError(t, suspend.Sleep(ctx, time.Second))
				}
				return nil
			}, simulation.Options{Seed: 1, Bubble: true})
			require.NoError(t, r.Err)
			hashes[r.Hash] = true
		})
	}
	require.Len(t, hashes, 1)
}

// The cancel of package context wakes each waiter on a goroutine. In a bubble, this is a part of the step. Elsewhere the World
// looks at the contexts itself.
func TestStockCancel(t *testing.T) {
	main := func(ctx context.Context, w *simulation.World) error {
		ended := 0
		ctx, cancel := context.WithCancel(ctx)
		for range 10 {
			_ = w.Go(func() { _ = suspend.Sleep(ctx, time.Hour); ended++ })
		}
		_ = suspend.Sleep(bg, time.Second)
		cancel()
		_ = suspend.Sleep(bg, time.Second)
		require.Equal(t, 10, ended)
		return nil
	}
	for seed := range uint64(20) {
		require.NoError(t, simulation.CheckInBubbles(t, simulation.Options{Seed: seed + 1}, main))
	}
	synctest.Test(t, func(t *testing.T) {
		failing(t, simulation.Options{Bubble: true}, simulation.ErrForeign, func(ctx context.Context, w *simulation.World) error {
			return suspend.Blocking(ctx, func() {
				done := make(chan error)
				go func() { done <- w.Go(func() {}) }()
				<-done
			})
		})
	})
	for seed := range uint64(20) {
		require.NoError(t, simulation.Check(main, simulation.Options{Seed: seed + 1}))
	}
}

func TestHere(t *testing.T) {
	require.Nil(t, simulation.Here())
	run(t, func(ctx context.Context, w *simulation.World) error {
		require.Same(t, w, simulation.Here())
		require.Same(t, w, suspend.Here())
		n := w.Node("n")
		_ = n.Go(func() {
			require.Same(t, w, simulation.Here())
			require.Same(t, n, suspend.Here())
		})
		return suspend.Sleep(ctx, 1)
	})
}

// suspend.Blocking runs its function at once: no other event occurs meanwhile.
func TestBlocking(t *testing.T) {
	run(t, func(ctx context.Context, w *simulation.World) error {
		ran := false
		_ = w.Go(func() { ran = true })
		require.NoError(t, suspend.Blocking(ctx, func() { require.False(t, ran) }))
		require.False(t, ran)
		return nil
	})
}

func TestTrace(t *testing.T) {
	var trace bytes.Buffer
	r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
		_ = w.Node("a").Go(func() { w.Log("hello %d", 1) })
		return suspend.Sleep(ctx, time.Second)
	}, simulation.Options{Seed: 1, Trace: &trace})
	require.Equal(t, `            0s  main begins, one of 1 that could run
            0s  main makes node a
            0s  main starts a task of a
            0s  main sets a timer for 1s
            0s  a#1 begins, one of 1 that could run
            0s  a#1: hello 1
            1s  a timer of the World
            1s  a timer or segment wakes main
            1s  main goes on, one of 1 that could run
`, trace.String())
	require.NotZero(t, r.Hash)
	require.Equal(t, 4, r.Steps)
}

// No code of the package ranges over a map, because the order would differ between runs. The test knows maps as fields, variables
// and results of map types.
func TestNoMapIsRangedOver(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, folder := range []string{"draws", "network", "seeds", "storage"} {
		some, err := filepath.Glob("internal/" + folder + "/*.go")
		require.NoError(t, err)
		files = append(files, some...)
	}
	maps, ranges := map[string]bool{}, map[string]string{}
	isMap := func(e ast.Expr) bool { _, ok := e.(*ast.MapType); return ok }
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				for _, id := range n.Names {
					maps[id.Name] = maps[id.Name] || isMap(n.Type)
				}
			case *ast.AssignStmt:
				for i, v := range n.Rhs {
					if lit, ok := v.(*ast.CompositeLit); ok && isMap(lit.Type) {
						maps[lastName(n.Lhs[i])] = true
					}
				}
			case *ast.FuncDecl:
				maps[n.Name.Name] = n.Type.Results != nil && isMap(n.Type.Results.List[0].Type)
			case *ast.RangeStmt:
				ranges[lastName(n.X)] = name
			}
			return true
		})
	}
	require.True(t, maps["nodes"] && maps["marks"] && maps["Off"] && maps["of"] && maps["stacks"], "the maps are not found: %v", maps)
	require.Greater(t, len(ranges), 10)
	for name, file := range ranges {
		require.False(t, maps[name], "%s ranges over the map %s", file, name)
	}
}

// lastName returns the last name of an expression.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return lastName(e.Fun)
	case *ast.IndexExpr:
		return lastName(e.X)
	case *ast.SliceExpr:
		return lastName(e.X)
	}
	return ""
}

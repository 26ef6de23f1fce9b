//go:build explore

package explore_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { boundedPrograms = append(boundedPrograms, idlePrograms...) }

// groupProgram runs body with a Group of tasks of the checker.
func groupProgram(body func(w *explore.World, g *idle.Group, ended func(*atomicx.Int64)), onIdle func(g *idle.Group)) func(w *explore.World) {
	return func(w *explore.World) {
		w.Go("main", func(context.Context) {
			var g *idle.Group
			var hook func()
			if onIdle != nil {
				hook = func() { onIdle(g) }
			}
			g = idle.New(suspend.Here(), hook)
			body(w, g, func(busy *atomicx.Int64) {
				_ = g.WaitIdle(bg)
				if n := busy.Load(); n != 0 {
					panic(fmt.Sprintf("idle, and %d are on their way", n))
				}
				_ = g.Wait(bg)
				if g.Live() != 0 {
					panic(fmt.Sprint("all have ended, except ", g.Live()))
				}
				_ = g.WaitIdle(bg)
			})
		})
		w.OnIdle(lost)
	}
}

var idlePrograms = []program{
	{"idle, a token", "3 × 2", groupProgram(func(_ *explore.World, g *idle.Group, ended func(*atomicx.Int64)) {
		var m mvar.MVar[int]
		busy := new(atomicx.Int64) // counts the token, and the task that puts it
		busy.Store(2)
		_ = g.Go(func() { _ = m.Put(bg, 1); busy.Add(-1) })
		_ = g.Go(func() { _, _ = m.Take(bg); busy.Add(-1) })
		ended(busy)
	}, nil)},
	{"idle, a task that is woken twice", "3 × 1", groupProgram(func(_ *explore.World, g *idle.Group, ended func(*atomicx.Int64)) {
		var t suspend.Task
		woken := new(atomicx.Bool)
		_ = g.Go(func() {
			t = suspend.Self()
			for !woken.Load() {
				t.Park()
			}
		})
		_ = g.WaitIdle(bg)
		for range 2 {
			_ = suspend.Here().Go(func() { woken.Store(true); t.Unpark() })
		}
		ended(new(atomicx.Int64))
	}, nil)},
	{"idle, onIdle resumes", "2 × 2", func(w *explore.World) {
		var m mvar.MVar[int]
		groupProgram(func(_ *explore.World, g *idle.Group, _ func(*atomicx.Int64)) {
			sum := new(atomicx.Int64)
			_ = g.Go(func() {
				for range 2 {
					n, _ := m.Take(bg)
					sum.Add(int64(n))
				}
			})
			_ = g.Wait(bg)
			if sum.Load() != 2 {
				panic(fmt.Sprint(sum.Load()))
			}
		}, func(*idle.Group) { m.TryPut(1) })(w)
	}},
	{"idle, woken from elsewhere", "3 × 2", func(w *explore.World) {
		p := promise.New[int]()
		groupProgram(func(_ *explore.World, g *idle.Group, ended func(*atomicx.Int64)) {
			busy := new(atomicx.Int64)
			_ = g.Go(func() { _, _ = p.Await(bg) })
			ended(busy)
		}, nil)(w)
		w.Go("fill", func(context.Context) { _ = p.Fill(1) })
	}},
}

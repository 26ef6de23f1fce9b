//go:build explore

package explore_test

import (
	"context"

	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, simulationPrograms...) }

// These programs call into a World from goroutines outside, while it sleeps, runs or ends, and its alarm rings.
var simulationPrograms = []program{
	{"simulation, two calls", "3 × 1", doorProgram(false, "call", "call2")},
	{"simulation, a call and the alarm", "3 × 1", doorProgram(true, "call")},
	{"simulation, two calls and the alarm", "4 × 1", doorProgram(true, "call", "call2")},
}

// doorProgram checks that each accepted call runs once, and that no wake-up is lost. The run ends with the alarm, or without an
// alarm when all calls have run.
func doorProgram(alarm bool, calls ...string) func(w *explore.World) {
	return func(w *explore.World) {
		x := simulation.NewExploring()
		ran, accepted := 0, 0
		var rung atomicx.Bool
		over := func() bool { return ran == len(calls) }
		if alarm {
			over = rung.Load
			w.Go("alarm", func(context.Context) { rung.Store(true); x.Alarm() })
		}
		w.Go("run", func(context.Context) { x.Run(rung.Load, over) })
		for _, name := range calls {
			w.Go(name, func(context.Context) {
				if x.Call(func() { ran++ }) == nil {
					accepted++
				}
			})
		}
		w.OnIdle(lost)
		w.Check(func() error { return same(accepted, ran) })
	}
}

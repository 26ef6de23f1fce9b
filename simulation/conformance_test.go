package simulation_test

import (
	"testing"

	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// start opens a World that other goroutines may call.
func start(o simulation.Options) (*simulation.World, func()) {
	return startAt(o, func(w *simulation.World) *simulation.World { return w })
}

// startAt is start for a part of a World.
func startAt[S any](o simulation.Options, part func(*simulation.World) S) (S, func()) {
	opened := make(chan S, 1)
	stop := suspendtest.Drive(simulation.OpenRun(o, func(w *simulation.World) { opened <- part(w) }))
	return <-opened, stop
}

func TestConformance(t *testing.T) {
	t.Run("Scheduler", func(t *testing.T) {
		suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
			return start(simulation.Options{})
		}, suspendtest.Options{NoAllocs: true,
			Panics: func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
				return start(simulation.Options{OnPanic: onPanic})
			}})
	})
	t.Run("Executor", func(t *testing.T) {
		suspendtest.Executor(t, func(testing.TB) (suspend.Executor, func()) {
			return start(simulation.Options{})
		}, suspendtest.Options{})
	})
	t.Run("Node", func(t *testing.T) {
		suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
			return startAt(simulation.Options{}, func(w *simulation.World) *simulation.Node { return w.Node("a") })
		}, suspendtest.Options{NoAllocs: true})
	})
}

package random_test

import (
	"testing"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func TestConformance(t *testing.T) {
	start := func(t testing.TB, o random.Options) (*random.Scheduler, func()) {
		s := random.New(o)
		t.Logf("seed %d", s.Seed())
		return s, suspendtest.Drive(s.Run)
	}
	t.Run("Scheduler", func(t *testing.T) {
		suspendtest.Scheduler(t, func(t testing.TB) (suspend.Spawner, func()) {
			return start(t, random.Options{})
		}, suspendtest.Options{NoAllocs: true,
			Panics: func(t testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
				return start(t, random.Options{OnPanic: onPanic})
			}})
	})
	t.Run("Executor", func(t *testing.T) {
		suspendtest.Executor(t, func(t testing.TB) (suspend.Executor, func()) {
			return start(t, random.Options{})
		}, suspendtest.Options{})
	})
}

package fifo_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func TestConformance(t *testing.T) {
	start := func(o fifo.Options) (*fifo.Scheduler, func()) {
		s := fifo.New(o)
		return s, suspendtest.Drive(s.Run)
	}
	t.Run("Scheduler", func(t *testing.T) {
		suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
			return start(fifo.Options{})
		}, suspendtest.Options{FIFO: true, NoAllocs: true,
			Panics: func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
				return start(fifo.Options{OnPanic: onPanic})
			}})
	})
	t.Run("Executor", func(t *testing.T) {
		suspendtest.Executor(t, func(testing.TB) (suspend.Executor, func()) {
			return start(fifo.Options{})
		}, suspendtest.Options{FIFO: true})
	})
	t.Run("Nested", func(t *testing.T) { // in a task of another scheduler
		suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
			s := fifo.New(fifo.Options{})
			return s, suspendtest.Drive(func(ctx context.Context, main func(context.Context) error) error {
				return fifo.Run(ctx, func(ctx context.Context) error { return s.Run(ctx, main) })
			})
		}, suspendtest.Options{FIFO: true, NoAllocs: true})
	})
}

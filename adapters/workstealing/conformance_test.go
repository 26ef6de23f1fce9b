package workstealing_test

import (
	"fmt"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func TestConformance(t *testing.T) {
	for _, workers := range []int{1, 4, large} {
		open := func(o workstealing.Options) (*workstealing.Pool, func()) {
			o.Workers = workers
			p := newPool(o)
			return p, func() { _ = p.Close() }
		}
		t.Run(fmt.Sprintf("Scheduler/workers=%d", workers), func(t *testing.T) {
			suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
				return open(workstealing.Options{})
			}, suspendtest.Options{FIFO: workers == 1, NoAllocs: true,
				Panics: func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
					return open(workstealing.Options{OnPanic: onPanic})
				}})
		})
		t.Run(fmt.Sprintf("Executor/workers=%d", workers), func(t *testing.T) {
			suspendtest.Executor(t, func(testing.TB) (suspend.Executor, func()) {
				return open(workstealing.Options{})
			}, suspendtest.Options{FIFO: workers == 1})
		})
	}
}

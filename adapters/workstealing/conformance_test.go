package workstealing_test

import (
	"fmt"
	"testing"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/suspendtest"
)

func TestConformance(t *testing.T) {
	start := func(o workstealing.Options) (*workstealing.Pool, func()) {
		p := workstealing.New(o)
		return p, func() { _ = p.Close() }
	}
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint("Scheduler/workers=", n), func(t *testing.T) {
			suspendtest.Scheduler(t, func(testing.TB) (suspend.Spawner, func()) {
				return start(workstealing.Options{Workers: n})
			}, suspendtest.NoAllocs(), suspendtest.Panics(
				func(_ testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
					return start(workstealing.Options{Workers: n, OnPanic: onPanic})
				}))
		})
		t.Run(fmt.Sprint("Executor/workers=", n), func(t *testing.T) {
			suspendtest.Executor(t, func(testing.TB) (suspend.Executor, func()) {
				return start(workstealing.Options{Workers: n})
			})
		})
	}
}

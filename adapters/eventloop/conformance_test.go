package eventloop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

func TestConformance(t *testing.T) {
	start := func(t testing.TB, o eventloop.Options) (*eventloop.Loop, func()) {
		l, err := eventloop.New(o)
		if err != nil {
			t.Fatal(err)
		}
		return l, func() { _ = l.Close() }
	}
	// A task of the loop has its reactor as its scheduler.
	reactor := func(t testing.TB, o eventloop.Options) (suspend.Spawner, func()) {
		l, end := start(t, o)
		var s suspend.Spawner
		task(t, l, func() { s = suspend.Here() })
		return s, end
	}
	// After a hand-over a reactor runs some tasks outside, in no fixed order.
	for name, o := range map[string]eventloop.Options{"in order": {HandOver: -1}, "HandOver": {HandOver: time.Millisecond}} {
		options := suspendtest.Options{FIFO: o.HandOver < 0, NoAllocs: o.HandOver < 0, Panics: func(t testing.TB, onPanic func(any, []byte)) (suspend.Spawner, func()) {
			return reactor(t, eventloop.Options{OnPanic: onPanic, HandOver: o.HandOver})
		}}
		t.Run(name, func(t *testing.T) {
			suspendtest.Scheduler(t, func(t testing.TB) (suspend.Spawner, func()) {
				return reactor(t, eventloop.Options{Loops: 2, HandOver: o.HandOver})
			}, options)
		})
	}
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("Executor/%d", n), func(t *testing.T) {
			suspendtest.Executor(t, func(t testing.TB) (suspend.Executor, func()) { return start(t, eventloop.Options{Loops: n}) }, suspendtest.Options{})
		})
	}
}

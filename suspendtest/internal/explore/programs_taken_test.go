//go:build explore && linux && !braid_portable

package explore_test

import (
	"context"
	"errors"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, takenPrograms...) }

// In these programs, the reactor is taken from a task with a timer, or with a descriptor.
var takenPrograms = []program{
	{"reactor, taken, a timer", "4 × 1", takenProgram(func(_ *explore.World, x *eventloop.Taken) {
		var w word
		goOnce(x.Leased, func() {
			x.Soon(w.wake)
			w.wait(x.Leased.Self(), 1)
		})
	})},
	{"reactor, taken, a descriptor", "5 × 1", takenProgram(func(w *explore.World, x *eventloop.Taken) {
		var made atomicx.Pointer[eventloop.Stream]
		var peer atomicx.Pointer[suspend.Task]
		goOnce(x.Leased, func() {
			s := x.Stream()
			made.Store(s)
			if p := peer.Load(); p != nil {
				(*p).Unpark()
			}
			if n, err := s.Read(bg); n != 1 || err != nil {
				panic(err)
			}
			_ = s.Close()
		})
		w.Go("peer", func(context.Context) {
			self := suspend.Self()
			peer.Store(&self)
			for made.Load() == nil {
				self.Park()
			}
			made.Load().Put()
		})
	})},
}

func takenProgram(begins func(w *explore.World, x *eventloop.Taken)) func(w *explore.World) {
	return func(w *explore.World) {
		x := eventloop.NewTaken(1)
		begins(w, x)
		w.Go("coroutine", func(context.Context) { x.Leased.Coroutine(0) })
		w.Go("run", func(context.Context) { x.Run() })
		w.Go("monitor", func(context.Context) { x.Monitor() })
		w.Go("close", func(context.Context) { _ = x.Close() })
		w.OnIdle(lost)
		w.Check(func() error {
			if x.Leased.Stats().Live != 0 {
				return errors.New("a task has not ended")
			}
			return freed(x.Exploring)()
		})
	}
}

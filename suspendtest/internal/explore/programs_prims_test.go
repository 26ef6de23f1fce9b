//go:build explore

package explore_test

import (
	"context"
	"errors"
	"runtime"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, primPrograms...) }

// Programs of the primitives that were added to those of programs_test.go.
var primPrograms = []program{
	{"promise, filled by its owner", "3 × 1", func(w *explore.World) {
		var x, y promise.Promise[int]
		race := promise.Race(&x, &y)
		won := 1
		w.Go("x", func(context.Context) { _ = x.Fill(1) })
		w.Go("owner", func(context.Context) {
			if race.Fill(2) == nil {
				won = 2
			}
		})
		got := 0
		w.Go("await", func(ctx context.Context) { got, _ = race.Await(ctx) })
		w.OnIdle(lost)
		w.Check(func() error {
			_ = y.Fill(3) // which changes nothing
			v, _, ok := race.Try()
			return errors.Join(onlyIf(ok), same(v, won), onlyIf(got == 0 || got == won))
		})
	}},
	{"promise, a continuation of a chain", "2 × 1", func(w *explore.World) {
		var x promise.Promise[int]
		inner := promise.Any(&x, new(promise.Promise[int]))
		outer := promise.Race(inner)
		called, got := 0, 0
		w.Go("then", func(ctx context.Context) {
			suspend.Then(ctx, outer.AwaitOp(), suspend.Here().(suspend.Executor), func(v int, _ error) {
				called++
				got = v
			})
		})
		w.Go("fill", func(context.Context) { _ = x.Fill(1) })
		w.Check(func() error {
			runtime.KeepAlive(outer) // or what is run would depend on when it is collected
			v, _, _ := outer.Try()
			return errors.Join(same(called, 1), same(v, 1), onlyIf(got == 0 || got == 1))
		})
	}},
	{"cond, the first that a broadcast wakes cancels the second", "3 × 1", func(w *explore.World) {
		var m mutex.Mutex
		c := cond.New(m.Locker())
		cancelled, end := cancel.New(bg)
		waiting, served := 0, 0 // of the second, and of those the Broadcast was for
		var first, second error
		w.Go("first", func(ctx context.Context) {
			_ = m.Lock(bg)
			first = c.Wait(ctx)
			m.Unlock()
			end(nil)
		})
		w.Go("second", func(context.Context) {
			_ = m.Lock(bg)
			waiting++
			second = c.Wait(cancelled)
			m.Unlock()
		})
		w.Go("broadcast", func(context.Context) {
			_ = m.Lock(bg)
			served = waiting
			m.Unlock()
			c.Broadcast() // the first may go on before it comes to the second
		})
		w.Check(func() error { return onlyIf(served == 0 || first != nil || second == nil) })
	}},
}

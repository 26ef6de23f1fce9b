//go:build explore

package explore_test

import (
	"context"
	"errors"
	"runtime"

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
}

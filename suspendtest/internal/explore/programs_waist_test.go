//go:build explore

package explore_test

import (
	"context"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { programs = append(programs, waistPrograms...) }

// What package suspend does beyond one primitive.
var waistPrograms = []program{
	// The order of looking is drawn from the scheduler, and one of the channels outlives the run: each run is the same
	// but for its choices all the same.
	{"select, in any order", "2 × 1", func(w *explore.World) {
		c := chanx.New[int](0)
		sent, received := 0, 0
		w.Go("select", func(ctx context.Context) {
			x, y, z := suspend.On(c.RecvOp()), suspend.On(outlives.RecvOp()), suspend.On(outlives.RecvOp())
			if won, _ := suspend.Select(ctx, z, x, y); won == x {
				received++
			}
		})
		w.Go("send", func(ctx context.Context) {
			if c.Send(ctx, 1) == nil {
				sent++
			}
		})
		w.OnIdle(func(waiting []string) error { return onlyIf(len(waiting) < 2) })
		w.Check(func() error { return same(sent, received) })
	}},
}

var outlives = chanx.New[int](0)

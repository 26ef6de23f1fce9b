package suspend_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// A Continuation that its own function arms receives each value, and allocates nothing.
func TestContinuationArmedAgain(t *testing.T) {
	ctx, stop := cancel.New(bg)
	defer stop(nil)
	for name, ctx := range map[string]context.Context{"background": bg, "cancellable": ctx} {
		t.Run(name, func(t *testing.T) {
			schedtest.OnFIFO(t, func(s *fifo.Scheduler) {
				var m mvar.MVar[int]
				sum, over := 0, false
				var c *suspend.Continuation[int]
				c = suspend.NewContinuation(m.TakeOp(), s, func(v int, err error) {
					if sum += v; err == nil && !over {
						c.Arm(ctx)
					}
				})
				c.Arm(ctx)
				puts := 0
				put := func() {
					puts++
					_ = m.Put(bg, 1)
					suspend.Yield()
				}
				for range 100 {
					put()
				}
				allocs := testing.AllocsPerRun(100, put)
				if allocs > 0 && !schedtest.Race {
					t.Errorf("%v allocations for each value", allocs)
				}
				require.Equal(t, puts, sum)
				require.PanicsWithValue(t, "suspend: Arm of a Continuation that is armed", func() { c.Arm(bg) })
				over = true
				put()
				require.Equal(t, puts, sum)
			})
		})
	}
}

package beside

import (
	"context"
	"time"

	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// A cron runs each job periodically. Two runs of a job never overlap, because missed ticks are skipped.
type cron struct {
	on    suspend.Spawner
	tasks *scope.Group
}

func newCron(ctx context.Context, on suspend.Spawner) *cron {
	return &cron{on, scope.Open(ctx, scope.FirstError)}
}

// every runs job at intervals of d. The stop function cancels the job and waits until it has ended.
func (c *cron) every(d time.Duration, job func(ctx context.Context)) (stop func(ctx context.Context), err error) {
	child, err := scope.Start(c.tasks.Scope, c.on, func(ctx context.Context) (none struct{}, err error) {
		for range rate.NewTicker(d, rate.Skip).All(ctx) {
			job(ctx)
		}
		return none, suspend.Err(ctx)
	})
	return func(ctx context.Context) { child.Cancel(nil); _, _ = child.Await(ctx) }, err
}

func (c *cron) close() error { return c.tasks.Close() }

package beside

import (
	"context"
	"sync"
	"time"
)

type cronUsual struct {
	ctx   context.Context
	end   context.CancelFunc
	tasks sync.WaitGroup
}

func newCronUsual(ctx context.Context) *cronUsual {
	c := new(cronUsual)
	c.ctx, c.end = context.WithCancel(ctx)
	return c
}

func (c *cronUsual) every(d time.Duration, job func(ctx context.Context)) (stop func(ctx context.Context), err error) {
	if err := c.ctx.Err(); err != nil { // a job that starts during a call of close might outlive the call
		return nil, err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	ended := make(chan struct{})
	c.tasks.Go(func() {
		defer close(ended)
		ticks := time.NewTicker(d)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				job(ctx)
			}
		}
	})
	return func(ctx context.Context) {
		cancel()
		select {
		case <-ended:
		case <-ctx.Done():
		}
	}, nil
}

func (c *cronUsual) close() error {
	c.end()
	c.tasks.Wait()
	return nil
}

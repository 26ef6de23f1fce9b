package beside

import (
	"context"
	"errors"
	"time"
)

func campaignUsual(ctx context.Context, l lease, every time.Duration, lead func(ctx context.Context) error) error {
	for {
		if err := termUsual(ctx, l, every, lead); !errors.Is(err, errLost) {
			return err
		}
	}
}

func termUsual(ctx context.Context, l lease, every time.Duration, lead func(ctx context.Context) error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	leads := false
	defer func() {
		cancel()
		if leads {
			<-ended
		}
	}()
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		held, err := l.take()
		switch {
		case err != nil:
			return err
		case leads && !held:
			return errLost
		case held && !leads:
			leads = true
			go func() { ended <- lead(ctx) }()
		}
		select {
		case <-ticks.C:
		case err := <-ended:
			leads = false
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

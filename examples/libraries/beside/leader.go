package beside

import (
	"context"
	"errors"
	"time"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// campaign polls l until it holds the lease, and runs lead until the lease is lost or lead returns. If the lease is lost, campaign starts
// again.
func campaign(ctx context.Context, on suspend.Spawner, l lease, every time.Duration, lead func(ctx context.Context) error) error {
	for {
		err := scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
			for leads := false; ; {
				held, err := l.take() // a client that blocks must be wrapped in suspend.Blocking
				switch {
				case err != nil:
					return err
				case leads && !held:
					return errLost
				case held && !leads:
					leads = true
					s.Go(on, func(ctx context.Context) error { defer s.Cancel(nil); return lead(ctx) })
				}
				if err := suspend.Sleep(ctx, every); err != nil {
					return err
				}
			}
		})
		if !errors.Is(err, errLost) {
			return err
		}
	}
}

package beside

import (
	"context"
	"sync"
	"time"

	"github.com/braidgo/braid/keyed"
	"github.com/braidgo/braid/rate"
	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// polite visits all pages that are reachable from start: at most three in parallel, two per host, and a hundred per second. The first error
// cancels the rest.
func polite(ctx context.Context, on suspend.Spawner, start string, links func(ctx context.Context, page string) ([]string, error)) (pages int, err error) {
	var seen sync.Map
	three, two, pace := semaphore.New(3), keyed.NewSemaphore[string](2), rate.NewLimiter(rate.Every(10*time.Millisecond), 1)
	fetch := func(ctx context.Context, page string) ([]string, error) {
		if err := two.Acquire(ctx, host(page)); err != nil {
			return nil, err
		}
		defer two.Release(host(page))
		if err := three.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer three.Release(1)
		if err := pace.Wait(ctx); err != nil {
			return nil, err
		}
		return links(ctx, page)
	}
	err = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		var visit func(page string) error
		visit = func(page string) error {
			if _, known := seen.LoadOrStore(page, true); known {
				return nil
			}
			return s.Go(on, func(ctx context.Context) error {
				next, err := fetch(ctx, page)
				for i := 0; err == nil && i < len(next); i++ {
					err = visit(next[i])
				}
				return err
			})
		}
		return visit(start)
	})
	seen.Range(func(any, any) bool { pages++; return true })
	return pages, err
}

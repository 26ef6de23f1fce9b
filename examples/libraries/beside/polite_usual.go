package beside

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

func politeUsual(ctx context.Context, start string, links func(ctx context.Context, page string) ([]string, error)) (pages int, err error) {
	var seen, hosts sync.Map // entries of hosts are never removed
	three, pace := semaphore.NewWeighted(3), rate.NewLimiter(rate.Every(10*time.Millisecond), 1)
	fetch := func(ctx context.Context, page string) ([]string, error) {
		known, _ := hosts.LoadOrStore(host(page), semaphore.NewWeighted(2))
		two := known.(*semaphore.Weighted)
		if err := two.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer two.Release(1)
		if err := three.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		defer three.Release(1)
		if err := pace.Wait(ctx); err != nil {
			return nil, err
		}
		return links(ctx, page)
	}
	g, ctx := errgroup.WithContext(ctx)
	var visit func(page string)
	visit = func(page string) {
		if _, known := seen.LoadOrStore(page, true); known {
			return
		}
		g.Go(func() error {
			next, err := fetch(ctx, page)
			if err != nil {
				return err
			}
			for _, page := range next {
				visit(page)
			}
			return nil
		})
	}
	visit(start)
	err = g.Wait()
	seen.Range(func(any, any) bool { pages++; return true })
	return pages, err
}

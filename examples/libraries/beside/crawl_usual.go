package beside

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

func crawlUsual(ctx context.Context, start string, links func(ctx context.Context, page string) ([]string, error)) (pages int, err error) {
	var seen sync.Map
	three := semaphore.NewWeighted(3) // SetLimit would deadlock, because the group's goroutines call g.Go
	g, ctx := errgroup.WithContext(ctx)
	var visit func(page string)
	visit = func(page string) {
		if _, known := seen.LoadOrStore(page, true); known {
			return
		}
		g.Go(func() error {
			if err := three.Acquire(ctx, 1); err != nil {
				return err
			}
			next, err := links(ctx, page)
			three.Release(1)
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

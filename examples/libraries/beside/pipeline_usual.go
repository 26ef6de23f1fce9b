package beside

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
)

func pipelineUsual(ctx context.Context, pages iter.Seq[string], fetch, parse, store func(ctx context.Context, page string) (string, error)) error {
	g, ctx := errgroup.WithContext(ctx)
	step := func(width int, in <-chan string, f func(ctx context.Context, page string) (string, error)) <-chan string {
		out := make(chan string)
		var workers sync.WaitGroup
		for range width {
			workers.Add(1)
			g.Go(func() error {
				defer workers.Done()
				for page := range in {
					done, err := f(ctx, page)
					if err != nil {
						return err
					}
					select {
					case out <- done:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			})
		}
		go func() {
			workers.Wait()
			close(out)
		}()
		return out
	}
	first := make(chan string)
	g.Go(func() error {
		defer close(first)
		for page := range pages {
			select {
			case first <- page:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range step(1, step(2, step(8, first, fetch), parse), store) {
	}
	return g.Wait()
}

package migration

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

type fetchFunc func(ctx context.Context, url string) (string, error)

// pagesBefore fetches pages, four at a time.
func pagesBefore(ctx context.Context, urls []string, fetch fetchFunc) ([]string, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	pages := make([]string, len(urls))
	for i, url := range urls {
		g.Go(func() error {
			page, err := fetch(ctx, url)
			pages[i] = page
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return pages, nil
}

func pagesAfter(ctx context.Context, urls []string, fetch fetchFunc) ([]string, error) {
	return scope.Map(ctx, scope.Limit(4, suspend.Goroutines), urls, fetch)
}

// mirrorAfter is for children that are not one function over a slice.
func mirrorAfter(ctx context.Context, urls []string, fetch fetchFunc, store func(ctx context.Context, page string) error) error {
	return scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		four := scope.Limit(4, suspend.Goroutines)
		for _, url := range urls {
			err := s.Go(four, func(ctx context.Context) error {
				page, err := fetch(ctx, url)
				if err != nil {
					return err
				}
				return store(ctx, page)
			})
			if err != nil {
				return err // a child has failed: Run returns the error of the child
			}
		}
		return nil
	})
}

// firstLong reads pages in order and stops at the first long one. At most four are fetched ahead.
func firstLong(ctx context.Context, urls iter.Seq[string], fetch fetchFunc) (string, error) {
	for page, err := range scope.Stream(ctx, suspend.Goroutines, 4, urls, fetch) {
		if err != nil || len(page) > 20 {
			return page, err // the calls that are left are cancelled, and have ended
		}
	}
	return "", nil
}

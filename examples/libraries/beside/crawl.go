package beside

import (
	"context"
	"sync"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/suspend"
)

// crawl visits all pages that are reachable from start, at most three in parallel. The first error cancels the rest.
func crawl(ctx context.Context, start string, links func(ctx context.Context, page string) ([]string, error)) (pages int, err error) {
	var seen sync.Map
	three := scope.Limit(3, suspend.Goroutines)
	err = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		var visit func(page string) error
		visit = func(page string) error {
			if _, known := seen.LoadOrStore(page, true); known {
				return nil
			}
			return s.Go(three, func(ctx context.Context) error {
				next, err := links(ctx, page)
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

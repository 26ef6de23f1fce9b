package beside

import (
	"context"
	"sync"

	"github.com/braidgo/braid/scope"
)

// crawl visits all pages that are reachable from start, at most three in parallel. The first error cancels the rest.
func crawl(ctx context.Context, start string, links func(ctx context.Context, page string) ([]string, error)) (pages int, err error) {
	var seen sync.Map
	three := scope.Limit(3, nil)
	err = scope.Run(ctx, func(ctx context.Context, s *scope.Scope) error {
		var visit func(page string)
		visit = func(page string) {
			if _, known := seen.LoadOrStore(page, true); !known {
				s.Go(three, func(ctx context.Context) error {
					next, err := links(ctx, page)
					for _, page := range next {
						visit(page)
					}
					return err
				})
			}
		}
		visit(start)
		return nil
	})
	seen.Range(func(any, any) bool { pages++; return true })
	return pages, err
}

package beside

import (
	"context"
	"iter"

	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/scope"
)

// thumbnails shrinks pictures on a pool and shows them in order. At most eight pictures are processed ahead of show.
func thumbnails(ctx context.Context, pool *workstealing.Pool, pictures iter.Seq[string], shrink func(context.Context, string) (string, error), show func(string)) error {
	for small, err := range scope.Stream(ctx, pool, 8, pictures, shrink) {
		if err != nil {
			return err
		}
		show(small)
	}
	return nil
}

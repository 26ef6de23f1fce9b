package beside

import (
	"context"

	"github.com/braidgo/braid/fetch"
)

// authorsOf returns a Source that loads authors in batches. A program needs only one such Source.
func authorsOf(s *store) *fetch.Source[int, int] {
	return fetch.BySlice("authors", func(ctx context.Context, ids []int) ([]int, error) { return s.load(ctx, ids), nil })
}

func authors(ctx context.Context, source *fetch.Source[int, int], books []int) (loaded []int, err error) {
	err = fetch.Run(ctx, func(ctx context.Context) error {
		loaded, err = fetch.Map(ctx, books, source.Get)
		return err
	})
	return loaded, err
}

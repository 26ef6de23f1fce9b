package beside

import (
	"context"

	"golang.org/x/sync/errgroup"
)

func sizesUsual(ctx context.Context, files []string, size func(context.Context, string) (int, error)) ([]int, error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	all := make([]int, len(files))
	for i, file := range files {
		g.Go(func() (err error) {
			all[i], err = size(ctx, file)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return all, nil
}

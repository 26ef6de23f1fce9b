package beside

import (
	"context"
	"slices"

	"github.com/braidgo/braid/adapters/workstealing"
)

// quicksort sorts v on a pool.
func quicksort(ctx context.Context, pool *workstealing.Pool, v []int) error {
	if len(v) < 2048 {
		slices.Sort(v)
		return nil
	}
	i := partition(v)
	return workstealing.Do(ctx, pool,
		func(ctx context.Context) error { return quicksort(ctx, pool, v[:i]) },
		func(ctx context.Context) error { return quicksort(ctx, pool, v[i+1:]) })
}

// mandelbrot computes the rows of a picture on a pool. The grain is one row, because rows take different times to compute.
func mandelbrot(ctx context.Context, pool *workstealing.Pool, rows [][]byte) error {
	return workstealing.For(ctx, pool, 0, len(rows), 1, func(_ context.Context, lo, hi int) error {
		fill(rows, lo)
		return nil
	})
}

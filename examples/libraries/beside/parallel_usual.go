package beside

import (
	"context"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

func quicksortUsual(ctx context.Context, v []int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	sortIn(ctx, g, v)
	return g.Wait()
}

func sortIn(ctx context.Context, g *errgroup.Group, v []int) {
	if len(v) < 2048 {
		slices.Sort(v)
		return
	}
	i := partition(v)
	sort := func() error { sortIn(ctx, g, v[:i]); return ctx.Err() }
	if !g.TryGo(sort) { // all goroutines are busy
		_ = sort()
	}
	sortIn(ctx, g, v[i+1:])
}

func mandelbrotUsual(ctx context.Context, rows [][]byte) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range rows {
		g.Go(func() error { fill(rows, i); return ctx.Err() })
	}
	return g.Wait()
}

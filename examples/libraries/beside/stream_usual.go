package beside

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/sourcegraph/conc/stream"
)

func thumbnailsUsual(ctx context.Context, pictures iter.Seq[string], shrink func(context.Context, string) (string, error), show func(string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := stream.New().WithMaxGoroutines(8)
	var failed atomic.Bool
	for picture := range pictures {
		if failed.Load() {
			break
		}
		s.Go(func() stream.Callback {
			small, err := shrink(ctx, picture)
			return func() {
				if err != nil && failed.CompareAndSwap(false, true) {
					cancel(err)
				}
				if !failed.Load() {
					show(small)
				}
			}
		})
	}
	s.Wait()
	return context.Cause(ctx)
}

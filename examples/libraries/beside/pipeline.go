package beside

import (
	"context"
	"iter"

	"github.com/braidgo/braid/scope"
	"github.com/braidgo/braid/stage"
	"github.com/braidgo/braid/suspend"
)

// pipeline fetches up to eight pages in parallel, parses up to two in parallel, and stores one page after another. A slow step slows down
// the steps before it. The first error cancels the rest, and Shutdown waits for it.
func pipeline(ctx context.Context, on suspend.Spawner, pages iter.Seq[string], fetch, parse, store func(ctx context.Context, page string) (string, error)) error {
	fetched := stage.New("fetch", fetch, stage.Options{Width: 8, On: on})
	parsed := stage.New("parse", parse, stage.Options{Width: 2, On: on})
	stored := stage.New("store", store, stage.Options{Width: 1, On: on})
	all := stage.Pipe(stage.Pipe(fetched, parsed), stored)
	defer all.Shutdown(context.WithoutCancel(ctx))
	for _, err := range stage.Each(ctx, all, scope.Lift(pages), stage.EachOptions{Unordered: true}) {
		if err != nil {
			return err
		}
	}
	return nil
}

//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { boundedPrograms = append(boundedPrograms, fetchPrograms...) }

// Runs whose tasks, and batches, are tasks of the checker. They are large: a Run with two keys has four tasks.
var fetchPrograms = []program{
	{"fetch, one key", "2 × 1", fetchProgram(func(ctx context.Context, src *fetch.Source[int, int], _ *promise.Promise[int]) error {
		v, err := src.Get(ctx, 1)
		if err == nil && v != 2 {
			panic(v)
		}
		return err
	}, 1)},
	{"fetch, two keys", "3 × 1", fetchProgram(func(ctx context.Context, src *fetch.Source[int, int], _ *promise.Promise[int]) error {
		a, b, err := fetch.Two(ctx,
			func(ctx context.Context) (int, error) { return src.Get(ctx, 1) },
			func(ctx context.Context) (int, error) { return src.Get(ctx, 2) })
		if err == nil && (a != 2 || b != 4) {
			panic(fmt.Sprint(a, b))
		}
		return err
	}, 1)},
	{"fetch, woken from elsewhere", "4 × 1", fetchProgram(func(ctx context.Context, src *fetch.Source[int, int], p *promise.Promise[int]) error {
		a, b, err := fetch.Two(ctx,
			func(ctx context.Context) (int, error) { return src.Get(ctx, 1) },
			func(ctx context.Context) (int, error) {
				k, err := p.Await(ctx)
				if err != nil {
					return 0, err
				}
				return src.Get(ctx, k)
			})
		if err == nil && (a != 2 || b != 4) {
			panic(fmt.Sprint(a, b))
		}
		return err
	}, 2)},
}

// fetchProgram makes a counted Run of body, whose context may be cancelled at any time. The number of rounds is bounded, and a round is
// never split.
func fetchProgram(body func(ctx context.Context, src *fetch.Source[int, int], p *promise.Promise[int]) error, rounds int) func(w *explore.World) {
	return func(w *explore.World) {
		var p promise.Promise[int]
		w.Go("run", func(ctx context.Context) {
			fetch.Batches = suspend.Here()
			var s *fetch.Session
			src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
				for _, k := range b.Keys() {
					b.Set(k, 2*k)
				}
				return nil
			})
			err := fetch.Options{On: suspend.Here()}.Run(ctx, func(ctx context.Context) error {
				s = fetch.Of(ctx)
				return body(ctx, src, &p)
			})
			if err != nil && !errors.Is(err, context.Canceled) {
				panic(err)
			}
			if s != nil && s.Stats().Rounds > rounds {
				panic(fmt.Sprintf("%+v", s.Stats()))
			}
		})
		w.Go("fill", func(context.Context) { _ = p.Fill(2) })
		w.OnIdle(lost)
	}
}

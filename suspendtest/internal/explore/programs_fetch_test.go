//go:build explore

package explore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/atomicx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/explore"
)

func init() { boundedPrograms = append(boundedPrograms, fetchPrograms...) }

// The tasks and the batches of a Run are tasks of the checker. These programs are large: a Run with two keys has four tasks.
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
	{"fetch, the other ends", "3 × 1", fetchProgram(func(ctx context.Context, src *fetch.Source[int, int], p *promise.Promise[int]) error {
		_, _, err := fetch.Two(ctx,
			func(ctx context.Context) (int, error) { return src.Get(ctx, 1) },
			func(ctx context.Context) (int, error) { return p.Await(ctx) })
		return err
	}, 1)},
	{"fetch, an outsider", "2 × 1", fetchOutsider},
	{"fetch, two outsiders", "2 × 1", fetchOutsiders(1, 1, 1)},
	{"fetch, two outsiders, two keys", "2 × 1", fetchOutsiders(1, 1, 2)},
	{"fetch, two outsiders, by time", "2 × 1", fetchOutsiders(-1, 1, 2)},
	{"fetch, Close at any time", "2 × 1", fetchClose},
}

// fetchOutsider has a counted Run and a task outside this Run, which fetch the same key. Each may be cancelled at any time, and
// the other one must still succeed. If neither is cancelled, the key is sent once.
func fetchOutsider(w *explore.World) {
	var session promise.Promise[context.Context]
	var sent atomicx.Int64
	src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
		for _, k := range b.Keys() {
			sent.Add(1)
			b.Set(k, 2*k)
		}
		return nil
	}, fetch.SourceOptions{})
	answered := func(v int, err error) bool {
		if err == nil && v != 2 || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, suspend.ErrEnded) {
			panic(fmt.Sprint(v, err))
		}
		return err == nil
	}
	var outside, over promise.Promise[bool]
	w.Go("run", func(ctx context.Context) {
		in, s := fetch.Open(ctx, fetch.Options{Settle: 1})
		_ = session.Fill(in)
		var v int
		err := fetch.Run(in, func(ctx context.Context) (err error) {
			v, err = src.Get(ctx, 1)
			return err
		}, fetch.Options{On: suspend.Here()})
		inside := answered(v, err)
		both, _ := outside.Await(context.Background())
		if inside && both && sent.Load() != 1 {
			panic(fmt.Sprint(sent.Load(), " times"))
		}
		s.Close()
		_ = over.Fill(true)
	})
	w.Go("outsider", func(ctx context.Context) {
		in, _ := session.Await(context.Background())
		own, stop := cancel.New(in)
		defer stop(nil)
		defer cancel.AfterFunc(ctx, func() { stop(nil) })()
		_ = outside.Fill(answered(src.Get(own, 1)))
		_, _ = over.Await(context.Background())
	})
	w.OnIdle(lost)
}

// fetchProgram runs body in a counted Run, whose context may be cancelled at any time. The number of rounds is bounded, and no
// round is split.
func fetchProgram(body func(ctx context.Context, src *fetch.Source[int, int], p *promise.Promise[int]) error, rounds int) func(w *explore.World) {
	return func(w *explore.World) {
		var p promise.Promise[int]
		w.Go("run", func(ctx context.Context) {
			var s *fetch.Session
			src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
				for _, k := range b.Keys() {
					b.Set(k, 2*k)
				}
				return nil
			}, fetch.SourceOptions{})
			err := fetch.Run(ctx, func(ctx context.Context) error {
				s = fetch.Of(ctx)
				return body(ctx, src, &p)
			}, fetch.Options{On: suspend.Here()})
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

// fetchOutsiders has tasks that share a session, outside any Run. Each fetches a key, and may be cancelled at any time. If turns
// is zero, the session settles after a time, which may pass at any point.
func fetchOutsiders(turns int, keys ...int) func(w *explore.World) {
	return func(w *explore.World) {
		src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
			for _, k := range b.Keys() {
				b.Set(k, 2*k)
			}
			return nil
		}, fetch.SourceOptions{})
		in, _ := fetch.Open(context.Background(), fetch.Options{Settle: turns})
		for i, k := range keys {
			w.Go(fmt.Sprint("outsider ", i), func(ctx context.Context) {
				own, stop := cancel.New(in)
				defer stop(nil)
				defer cancel.AfterFunc(ctx, func() { stop(nil) })()
				if v, err := src.Get(own, k); err == nil && v != 2*k || err != nil && !errors.Is(err, context.Canceled) {
					panic(fmt.Sprint(v, err))
				}
			})
		}
		w.OnIdle(lost)
	}
}

// fetchClose has a Get outside any Run, in a session that another task closes at any time.
func fetchClose(w *explore.World) {
	src := fetch.New("src", func(_ context.Context, b *fetch.Batch[int, int]) error {
		b.Set(1, 2)
		return nil
	}, fetch.SourceOptions{})
	in, s := fetch.Open(context.Background(), fetch.Options{Settle: 1})
	w.Go("outsider", func(ctx context.Context) {
		own, stop := cancel.New(in)
		defer stop(nil)
		defer cancel.AfterFunc(ctx, func() { stop(nil) })()
		v, err := src.Get(own, 1)
		if err == nil && v != 2 || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, suspend.ErrEnded) {
			panic(fmt.Sprint(v, err))
		}
	})
	w.Go("close", func(context.Context) { s.Close() })
	w.OnIdle(lost)
}

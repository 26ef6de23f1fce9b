package suspendtest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"

	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspendtest"
)

var errOdd = errors.New("odd")

// double loads even keys, and fails for odd ones.
func double(_ context.Context, b *fetch.Batch[int, int]) error {
	for _, k := range b.Keys() {
		if k%2 != 0 {
			return errOdd
		}
		b.Set(k, 2*k)
	}
	return nil
}

// gets fetches each key in a task of its own. All are in one Run, which sends one batch.
func gets(src *fetch.Source[int, int], keys ...int) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		w.Go("run", func(context.Context) {
			err := fetch.Run(context.Background(), func(ctx context.Context) error {
				vs, err := fetch.Map(ctx, keys, src.Get)
				if s := fetch.Of(ctx).Stats(); s.Rounds != 1 || s.Batches != 1 || s.Keys != len(keys) {
					return fmt.Errorf("%+v", s)
				}
				for i, v := range vs {
					if v != 2*keys[i] {
						return fmt.Errorf("%d for %d", v, keys[i])
					}
				}
				return err
			}, fetch.Options{})
			if odd := keys[0]%2 != 0; odd != errors.Is(err, errOdd) || !odd && err != nil {
				panic(err)
			}
		})
	}
}

// deposits adds one twice to a balance that a Source reads and an Effect writes.
func deposits(lock func(f func())) func(w *suspendtest.World) {
	return func(w *suspendtest.World) {
		balance := 0
		read := fetch.New("read", func(_ context.Context, b *fetch.Batch[int, int]) error { b.Set(1, balance); return nil }, fetch.SourceOptions{})
		write := fetch.NewEffect("write", func(_ context.Context, b *fetch.Batch[int, int]) error { balance = b.Keys()[0]; return nil }, fetch.SourceOptions{})
		for _, name := range []string{"a", "b"} {
			w.Go(name, func(context.Context) {
				lock(func() {
					_ = fetch.Run(context.Background(), func(ctx context.Context) error {
						v, _ := read.Get(ctx, 1)
						_, _ = write.Do(ctx, v+1)
						return nil
					}, fetch.Options{})
				})
			})
		}
		w.Check(func() error {
			if balance != 2 {
				return errors.New("lost")
			}
			return nil
		})
	}
}

// cancelled has a Get whose context may end. Another Get of the same key must succeed anyway.
func cancelled(seen map[error]bool) func(w *suspendtest.World) {
	src := fetch.New("double", double, fetch.SourceOptions{})
	return func(w *suspendtest.World) {
		w.Go("run", func(ctx context.Context) {
			err := fetch.Run(ctx, func(ctx context.Context) error {
				_, err := src.Get(ctx, 2)
				if v, again := src.Get(context.WithoutCancel(ctx), 2); v != 4 || again != nil {
					return fmt.Errorf("%d, %w", v, again)
				}
				return err
			}, fetch.Options{})
			for _, known := range []error{nil, context.Canceled} {
				if errors.Is(err, known) {
					seen[known] = true
					return
				}
			}
			panic(err)
		})
	}
}

// The tasks of a Run, and its batches, are tasks of Explore. Of n Gets, the first begins in the body's task, and the others begin
// in any order. After the batch, all n continue in any order. This makes (n-1)!·n! runs.
func TestFetch(t *testing.T) {
	source := fetch.New("double", double, fetch.SourceOptions{})
	byKey := fetch.ByKey("double", 2, func(_ context.Context, k int) (int, error) { return 2 * k, nil }, fetch.SourceOptions{})
	inline := fetch.New("double", double, fetch.SourceOptions{Inline: true})
	var m mutex.Mutex
	seen := map[error]bool{}
	for name, p := range map[string]struct {
		program func(w *suspendtest.World)
		opts    suspendtest.ExploreOptions
		want    string
	}{
		"two Gets":            {gets(source, 2, 4), suspendtest.ExploreOptions{Waits: true}, "^explored: 2 runs, all of them$"},
		"three Gets":          {gets(source, 2, 4, 6), suspendtest.ExploreOptions{Waits: true}, "^explored: 12 runs, all of them$"},
		"inline":              {gets(inline, 2, 4), suspendtest.ExploreOptions{Waits: true}, "^explored: 2 runs, all of them$"},
		"a source that fails": {gets(source, 1, 3), suspendtest.ExploreOptions{Waits: true}, "^explored: 2 runs, all of them$"},
		"each operation":      {gets(source, 2, 4), suspendtest.ExploreOptions{Preemptions: 1}, `^explored: \d+ runs, all but those with more preemptions than 1$`},
		"by key":              {gets(byKey, 2, 4), suspendtest.ExploreOptions{Preemptions: 1}, `^explored: \d+ runs, all but those with more preemptions than 1$`},
		"cancelled":           {cancelled(seen), suspendtest.ExploreOptions{Waits: true}, `^explored: \d+ runs, all of them$`},
		"cancelled, each":     {cancelled(seen), suspendtest.ExploreOptions{Preemptions: 1}, `^explored: \d+ runs, all but those with more preemptions than 1$`},
		"a lost update":       {deposits(func(f func()) { f() }), suspendtest.ExploreOptions{}, `^run \d+ of the exploration, without a cancellation, has failed: check: lost`},
		"no lost update":      {deposits(func(f func()) { m.Lock(); defer m.Unlock(); f() }), suspendtest.ExploreOptions{Waits: true}, `^explored: \d+ runs, all of them$`},
	} {
		if text := explored(t, p.program, p.opts); !regexp.MustCompile(p.want).MatchString(text) {
			t.Errorf("%s: %s", name, text)
		} else {
			t.Logf("%s: %.80s", name, text)
		}
	}
	if !seen[nil] || !seen[context.Canceled] {
		t.Error(seen)
	}
}

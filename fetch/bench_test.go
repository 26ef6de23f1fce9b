package fetch_test

import (
	"context"
	"testing"

	"github.com/braidgo/braid/fetch"
)

func instant(name string, o fetch.SourceOptions) *fetch.Source[int, int] {
	return fetch.New(name, func(_ context.Context, b *fetch.Batch[int, int]) error {
		for _, k := range b.Keys() {
			b.Set(k, k)
		}
		return nil
	}, o)
}

func BenchmarkEmptyRun(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_ = fetch.Run(context.Background(), func(context.Context) error { return nil }, fetch.Options{})
	}
}

func BenchmarkRunWithOneGet(b *testing.B) {
	src := instant("ints", fetch.SourceOptions{})
	b.ReportAllocs()
	for b.Loop() {
		_ = fetch.Run(context.Background(), func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }, fetch.Options{})
	}
}

func BenchmarkHit(b *testing.B) {
	src := instant("ints", fetch.SourceOptions{})
	_ = fetch.Run(context.Background(), func(ctx context.Context) error {
		_, _ = src.Get(ctx, 1)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = src.Get(ctx, 1)
		}
		return nil
	}, fetch.Options{})
}

func BenchmarkChain10(b *testing.B) {
	src := instant("ints", fetch.SourceOptions{})
	b.ReportAllocs()
	for b.Loop() {
		_ = fetch.Run(context.Background(), func(ctx context.Context) error {
			for k := range 10 {
				if _, err := src.Get(ctx, k); err != nil {
					return err
				}
			}
			return nil
		}, fetch.Options{})
	}
}

// 1,000 users with 5 posts each, and the authors of these posts.
func BenchmarkPosts(b *testing.B) {
	posts := fetch.BySlice("posts", func(_ context.Context, users []int) ([][]int, error) {
		out := make([][]int, len(users))
		for i, u := range users {
			for j := range 5 {
				out[i] = append(out[i], (5*u+j)%1000)
			}
		}
		return out, nil
	}, fetch.SourceOptions{})
	authors := instant("authors", fetch.SourceOptions{})
	users := make([]int, 1000)
	for i := range users {
		users[i] = i
	}
	item := func(ctx context.Context, u int) ([]int, error) {
		ps, err := posts.Get(ctx, u)
		if err != nil {
			return nil, err
		}
		return fetch.Map(ctx, ps, authors.Get)
	}
	bulk := func(ctx context.Context, u int) ([]int, error) {
		ps, err := posts.Get(ctx, u)
		if err != nil {
			return nil, err
		}
		return authors.All(ctx, ps)
	}
	for _, c := range []struct {
		name string
		f    func(ctx context.Context, u int) ([]int, error)
		o    fetch.Options
	}{{"item", item, fetch.Options{}}, {"bulk", bulk, fetch.Options{}}, {"traced item", item, fetch.Options{Trace: true}}, {"traced bulk", bulk, fetch.Options{Trace: true}}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = fetch.Run(context.Background(), func(ctx context.Context) error {
					_, err := fetch.Map(ctx, users, c.f)
					if s := fetch.Of(ctx).Stats(); s.Batches != 2 {
						b.Fatal(s)
					}
					return err
				}, c.o)
			}
		})
	}
}

// TestAllocs limits the allocations of the most frequent calls.
func TestAllocs(t *testing.T) {
	src := instant("ints", fetch.SourceOptions{})
	_ = fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.Get(ctx, 1)
		if n := testing.AllocsPerRun(100, func() { _, _ = src.Get(ctx, 1) }); n != 0 {
			t.Errorf("a hit allocates %v times", n)
		}
		return err
	}, fetch.Options{})
	get := func(ctx context.Context) error { _, err := src.Get(ctx, 1); return err }
	if n := testing.AllocsPerRun(100, func() { _ = fetch.Run(context.Background(), get, fetch.Options{}) }); n > 28 { // 25 are usual
		t.Errorf("a Run with one Get allocates %v times", n)
	}
	keys := make([]int, 1000)
	for i := range keys {
		keys[i] = i
	}
	all := func(ctx context.Context) error { _, err := src.All(ctx, keys); return err }
	if n := testing.AllocsPerRun(10, func() { _ = fetch.Run(context.Background(), all, fetch.Options{}) }); n > 1200 { // one for each key, and a few others
		t.Errorf("All of 1,000 keys allocates %v times", n)
	}
	_ = fetch.Run(t.Context(), func(ctx context.Context) error {
		_, err := src.All(ctx, keys)
		if n := testing.AllocsPerRun(10, func() { _, _ = fetch.Map(ctx, keys[:10], src.Get) }); n > 16 { // the group, its results, and a function for each task
			t.Errorf("a Map of 10 hits allocates %v times", n)
		}
		return err
	}, fetch.Options{})
}

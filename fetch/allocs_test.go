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

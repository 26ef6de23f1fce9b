package migration

import (
	"context"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"

	"github.com/braidgo/braid/fetch"
)

// A store has books and their authors. It notes the batches.
type store struct {
	mu      sync.Mutex
	batches [][]int
}

func (s *store) load(_ context.Context, ids []int) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, ids)
	found := make([]int, len(ids))
	for i, id := range ids {
		found[i] = id % 100
	}
	return found
}

// authorsBefore loads the author of each book by a dataloader: a goroutine for each, and a wait of two milliseconds.
func authorsBefore(ctx context.Context, s *store, books []int) ([]int, error) {
	authors := dataloader.NewBatchedLoader(func(ctx context.Context, ids []int) []*dataloader.Result[int] {
		results := make([]*dataloader.Result[int], len(ids))
		for i, v := range s.load(ctx, ids) {
			results[i] = &dataloader.Result[int]{Data: v}
		}
		return results
	}, dataloader.WithWait[int, int](2*time.Millisecond))
	loaded := make([]int, len(books))
	errs := make([]error, len(books))
	var wg sync.WaitGroup
	for i, id := range books {
		wg.Go(func() { loaded[i], errs[i] = authors.Load(ctx, id)() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// authorsOf is a Source, made once for the program.
func authorsOf(s *store) *fetch.Source[int, int] {
	return fetch.BySlice("authors", func(ctx context.Context, ids []int) ([]int, error) { return s.load(ctx, ids), nil })
}

func authorsAfter(ctx context.Context, authors *fetch.Source[int, int], books []int) (loaded []int, err error) {
	err = fetch.Run(ctx, func(ctx context.Context) error {
		loaded, err = fetch.Map(ctx, books, authors.Get)
		return err
	})
	return loaded, err
}

package beside

import (
	"context"
	"sync"
	"time"

	"github.com/graph-gophers/dataloader/v7"
)

// authorsUsual loads the author of each book with a dataloader. Each book needs a goroutine, and each batch waits for two milliseconds.
func authorsUsual(ctx context.Context, s *store, books []int) ([]int, error) {
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

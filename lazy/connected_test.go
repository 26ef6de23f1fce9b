package lazy_test

import (
	"context"
	"sync"
	"testing"

	"github.com/braidgo/braid/lazy"
)

// A long Force does not block an unrelated Lazy. Connected Lazies share one lock, in whatever order they were connected.
func TestConnectedAndApart(t *testing.T) {
	const tasks, values = 8, 30
	for range 20 {
		var lazies [tasks][values]*lazy.Lazy[int]
		var all sync.WaitGroup
		for i := range tasks {
			for j := range values {
				lazies[i][j] = lazy.New(func(ctx context.Context) (int, error) {
					if j == 0 {
						return 1, nil
					}
					sum := 0
					for _, k := range []int{j - 1, (j - 1) / 2} { // forces a value of its own, and a value of a neighbour
						v, err := lazies[i][k].Force(ctx)
						if err != nil {
							return 0, err
						}
						sum = max(sum, v)
						if v, err = lazies[(i+1)%tasks][k].Force(context.WithoutCancel(ctx)); err != nil {
							return 0, err
						}
						sum = max(sum, v)
					}
					return sum + 1, nil
				}, lazy.Restart)
			}
		}
		for i := range tasks {
			for j := range values {
				all.Go(func() {
					if v, err := lazies[i][j].Force(bg); v != j+1 || err != nil {
						t.Errorf("%d, %d: %d, %v", i, j, v, err)
					}
				})
			}
		}
		all.Wait()
	}
}

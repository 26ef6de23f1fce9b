package random_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/suspend"
)

// An increment that suspends between its read and its write is not atomic, which only some orders show. The adversary finds such
// an order, and its seed repeats it.
func ExampleNew() {
	lost := func(seed uint64) bool {
		n := 0
		_ = random.New(random.Options{Seed: seed}).Run(context.Background(), func(context.Context) error {
			for range 2 {
				_ = suspend.Here().Go(func() {
					read := n
					suspend.Yield()
					n = read + 1
				})
			}
			return nil
		})
		return n != 2
	}
	for seed := uint64(1); ; seed++ {
		if lost(seed) {
			fmt.Println("an increment was lost, and again:", lost(seed))
			return
		}
	}
	// Output: an increment was lost, and again: true
}

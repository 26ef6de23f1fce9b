package cond_test

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
)

func ExampleCond_Wait() {
	// The customer waits until there is enough, or leaves. Wait returns with the lock held in either case.
	var mu mutex.Mutex
	delivered := cond.New(&mu)
	stock := 0
	order := func(ctx context.Context, n int) error {
		if err := mu.LockContext(ctx); err != nil {
			return err
		}
		defer mu.Unlock()
		for stock < n {
			if err := delivered.Wait(ctx); err != nil {
				return err
			}
		}
		stock -= n
		return nil
	}
	_ = fifo.Run(bg, func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			for range 3 {
				mu.Lock()
				stock++
				mu.Unlock()
				delivered.Broadcast()
				suspend.Yield()
			}
		})
		fmt.Println(order(ctx, 2), stock)
		impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		fmt.Println(order(impatient, 5), stock)
		return nil
	})
	// Output:
	// <nil> 0
	// context deadline exceeded 1
}

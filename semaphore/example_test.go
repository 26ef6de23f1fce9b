package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
)

// Many downloads share ten units of bandwidth.
func ExampleSemaphore_Acquire() {
	bandwidth := semaphore.New(10)
	used, most := int64(0), int64(0)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		for i := range int64(20) {
			_ = suspend.Here().Go(func() {
				need := i%4 + 1
				if bandwidth.Acquire(ctx, need) != nil {
					return
				}
				defer bandwidth.Release(need)
				used += need
				most = max(most, used)
				suspend.Yield() // stands for the download
				used -= need
			})
		}
		return nil
	})
	fmt.Println(most)
	// Output: 10
}

// AcquireOp takes a connection of the pool that has one first.
func ExampleSemaphore_AcquireOp() {
	ctx := context.Background()
	primary, replica := semaphore.New(1), semaphore.New(1)
	_ = primary.Acquire(ctx, 1) // the primary pool has none left

	p, r := suspend.CaseOf(primary.AcquireOp(1)), suspend.CaseOf(replica.AcquireOp(1))
	switch won, err := suspend.SelectOrdered(ctx, p, r); won {
	case p:
		fmt.Println("primary")
	case r:
		fmt.Println("replica")
	case nil:
		fmt.Println(err)
	}
	// Output: replica
}

// A pool that shrinks closes its surplus connections as they are returned.
func ExampleSemaphore_Resize() {
	ctx := context.Background()
	pool := semaphore.New(2)
	_ = pool.Acquire(ctx, 2)
	pool.Resize(1)
	pool.Release(1)
	fmt.Println(pool.TryAcquire(1))
	pool.Release(1)
	fmt.Println(pool.TryAcquire(1))
	// Output:
	// false
	// true
}

func ExampleSemaphore_Acquire_timeout() {
	s := semaphore.New(3)
	_ = s.Acquire(context.Background(), 2)

	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := s.Acquire(ctx, 2)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), s.TryAcquire(1))
	// Output: true true
}

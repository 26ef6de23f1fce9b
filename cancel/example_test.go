package cancel_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func ExampleNew() {
	ctx, stop := cancel.New(context.Background())
	never := promise.New[int]()
	failed := 0
	_ = fifo.Run(context.Background(), func(context.Context) error {
		s := suspend.Here()
		for range 1000 {
			_ = s.Go(func() {
				if _, err := never.Await(ctx); err != nil {
					failed++
				}
			})
		}
		return s.Go(func() { stop(errors.New("closing time")) }) // makes all tasks runnable, on this scheduler
	})
	fmt.Println(failed, "gave up:", context.Cause(ctx))
	// Output: 1000 gave up: closing time
}

// The function runs without a goroutine, before the cancel function returns.
func ExampleAfterFunc() {
	ctx, stop := cancel.New(context.Background())
	withdraw := cancel.AfterFunc(ctx, func() { fmt.Println("close the connection:", context.Cause(ctx)) })
	stop(errors.New("the client has gone"))
	fmt.Println("withdrawn:", withdraw())
	// Output:
	// close the connection: the client has gone
	// withdrawn: false
}

// A deadline in the past ends the context at once.
func ExampleWithDeadlineCause() {
	ctx, stop := cancel.WithDeadlineCause(context.Background(), time.Now().Add(-time.Second), errors.New("the auction is over"))
	defer stop()
	fmt.Println(ctx.Err(), "-", context.Cause(ctx))
	// Output: context deadline exceeded - the auction is over
}

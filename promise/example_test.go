package promise_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/promise"
)

func ExamplePromise() {
	answer := promise.New[int]()
	go func() { answer.Fill(42) }() // a plain goroutine

	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		v, err := answer.Await(ctx) // suspends the task, but does not block its scheduler
		fmt.Println(v, err)
		return nil
	})
	// Output: 42 <nil>
}

package cancel_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/mvar"
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
		return s.Go(func() { stop(errors.New("closing time")) }) // makes all of them runnable, on this one
	})
	fmt.Println(failed, "gave up:", context.Cause(ctx))
	// Output: 1000 gave up: closing time
}

func ExampleLazily() {
	ctx, stop := context.WithCancel(context.Background())
	var m mvar.MVar[int]
	ended := make(chan error)
	go func() {
		_, err := m.Take(cancel.Lazily(ctx))
		ended <- err
	}()
	stop()
	// The Take may still be waiting. The Put that meets it is told so, and its value stays in m.
	_ = m.Put(context.Background(), 1)
	fmt.Println(<-ended)
	fmt.Println(m.TryTake())
	// Output:
	// context canceled
	// 1 true
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

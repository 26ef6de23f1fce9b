package chanx_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/suspend"
)

func ExampleChan() {
	// In a pipeline, the sender closes its channel, which ends the receiver's loop.
	_ = fifo.Run(bg, func(ctx context.Context) error {
		numbers, squares := chanx.New[int](0), chanx.New[int](2)
		_ = suspend.Here().Go(func() {
			defer numbers.Close()
			for i := range 4 {
				_ = numbers.Send(ctx, i)
			}
		})
		_ = suspend.Here().Go(func() {
			defer squares.Close()
			for n, err := range numbers.All(ctx) {
				if err != nil {
					_ = squares.CloseWith(err)
					return
				}
				_ = squares.Send(ctx, n*n)
			}
		})
		for sq, err := range squares.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(sq)
		}
		return nil
	})
	// Output:
	// 0
	// 1
	// 4
	// 9
}

func ExampleChan_Recv() {
	// Values that were sent before Close are still received.
	jobs := chanx.New[string](2)
	_ = jobs.Send(bg, "sweep")
	_ = jobs.Close()
	fmt.Println(jobs.Recv(bg))
	_, err := jobs.Recv(bg)
	fmt.Println(err)
	// Output:
	// sweep <nil>
	// chanx: closed
}

func ExampleChan_Send() {
	// A cancelled Send has sent nothing.
	full := chanx.New[int](1)
	_ = full.Send(bg, 1)
	ctx, cancel := context.WithTimeout(bg, time.Millisecond)
	defer cancel()
	fmt.Println(full.Send(ctx, 2), full.Len())
	// Output: context deadline exceeded 1
}

func ExampleChan_RecvOp() {
	// The Select takes the first of two answers, or none if neither comes in time.
	near, far := chanx.New[string](1), chanx.New[string](1)
	_ = near.Send(bg, "near")
	answer := suspend.CaseOf(suspend.Choose(near.RecvOp(), far.RecvOp()))
	timeout := suspend.CaseOf(suspend.After(time.Minute))
	switch won, _ := suspend.Select(bg, answer, timeout); won {
	case answer:
		fmt.Println(answer.Value())
	case timeout:
		fmt.Println("no answer")
	}
	// Output: near
}

func ExampleChan_CloseWith() {
	// A receiver can tell a source that failed from one that ended.
	lines := chanx.New[string](1)
	_ = lines.Send(bg, "begin")
	_ = lines.CloseWith(io.ErrUnexpectedEOF)
	for line, err := range lines.All(bg) {
		fmt.Printf("%q %v\n", line, err)
	}
	// Output:
	// "begin" <nil>
	// "" unexpected EOF
}

// A producer makes its next value only while the channel is open.
func ExampleChan_AwaitCloseOp() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		readings := chanx.New[int](0)
		_ = suspend.Here().Go(func() {
			defer func() { fmt.Println("the producer ends") }()
			closed := suspend.CaseOf(readings.AwaitCloseOp())
			tick := suspend.CaseOf(suspend.After(time.Millisecond))
			for n := 1; ; n++ {
				if won, err := suspend.Select(ctx, closed, tick); won == closed || err != nil {
					return
				}
				_ = readings.Send(ctx, n)
			}
		})
		n, err := readings.Recv(ctx)
		fmt.Println(n, err)
		return readings.Close()
	})
	// Output:
	// 1 <nil>
	// the producer ends
}

func ExampleChan_All() {
	ctx := context.Background()
	c := chanx.New[int](3)
	for i := range 3 {
		_ = c.Send(ctx, i)
	}
	_ = c.Close()
	for v, err := range c.All(ctx) {
		fmt.Println(v, err)
	}
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 2 <nil>
}

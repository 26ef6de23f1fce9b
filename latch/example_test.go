package latch_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/suspend"
)

// A service is ready as soon as its parts are.
func ExampleLatch_Wait() {
	ready := latch.New(3)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		for _, part := range []string{"cache", "index", "log"} {
			_ = suspend.Here().Go(func() {
				fmt.Println(part)
				ready.CountDown()
			})
		}
		err := ready.Wait(ctx)
		fmt.Println("ready", err)
		return err
	})
	// Output:
	// cache
	// index
	// log
	// ready <nil>
}

func ExampleLatch_WaitOp() {
	ready := latch.New(1)
	open, timeout := suspend.CaseOf(ready.WaitOp()), suspend.CaseOf(suspend.After(time.Millisecond))
	switch won, _ := suspend.Select(context.Background(), open, timeout); won {
	case open:
		fmt.Println("ready")
	case timeout:
		fmt.Println("not yet")
	}
	// Output: not yet
}

// Each step of a simulation begins when all workers have completed the step before. One of them reports it.
func ExampleBarrier_Wait() {
	const workers, steps = 3, 2
	cells, barrier := make([]int, workers), latch.NewBarrier(workers)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		for i := range workers {
			_ = suspend.Here().Go(func() {
				for range steps {
					cells[i] += i
					index, err := barrier.Wait(ctx)
					if err != nil {
						return
					}
					if index == 0 {
						fmt.Println(cells)
					}
					if _, err = barrier.Wait(ctx); err != nil { // the step was reported
						return
					}
				}
			})
		}
		return nil
	})
	// Output:
	// [0 1 2]
	// [0 2 4]
}

// A party that gives up breaks the round of the others.
func ExampleBarrier_Wait_broken() {
	barrier := latch.NewBarrier(3)
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		_ = suspend.Here().Go(func() {
			_, err := barrier.Wait(ctx)
			fmt.Println(err)
		})
		impatient, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err := barrier.Wait(impatient)
		fmt.Println(errors.Is(err, context.DeadlineExceeded))
		return nil
	})
	// Output:
	// true
	// latch: barrier broken
}

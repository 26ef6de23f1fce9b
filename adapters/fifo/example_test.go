package fifo_test

import (
	"context"
	"fmt"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
)

func ExampleRun() {
	_ = fifo.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println("a task, on the goroutine that called Run")
		return nil
	})
	fmt.Println("and all tasks have ended")
	// Output:
	// a task, on the goroutine that called Run
	// and all tasks have ended
}

func ExampleScheduler_Go() {
	s := fifo.New(fifo.Options{})
	_ = s.Run(context.Background(), func(ctx context.Context) error {
		var line mvar.MVar[string]
		_ = s.Go(func() {
			for _, w := range []string{"one", "at", "a", "time"} {
				_ = line.Put(ctx, w) // suspends while the line is full, so that the other task runs
			}
		})
		for range 4 {
			w, err := line.Take(ctx)
			if err != nil {
				return err
			}
			fmt.Println(w)
		}
		return nil
	})
	// Output:
	// one
	// at
	// a
	// time
}

// Requests are collected, and sent together when no task that could add another is left. This needs no timer.
func ExampleScheduler_OnIdle() {
	s := fifo.New(fifo.Options{})
	var asked []int
	var answer promise.Promise[map[int]string]
	fetch := func(ctx context.Context, id int) string {
		if asked = append(asked, id); len(asked) == 1 {
			s.OnIdle(func() {
				fmt.Println("one query for", asked)
				rows := map[int]string{}
				for _, id := range asked {
					rows[id] = fmt.Sprint("row ", id)
				}
				answer.Fill(rows)
			})
		}
		rows, _ := answer.Await(ctx)
		return rows[id]
	}
	_ = s.Run(context.Background(), func(ctx context.Context) error {
		for id := range 3 {
			_ = s.Go(func() { fmt.Println(fetch(ctx, id)) })
		}
		return nil
	})
	// Output:
	// one query for [0 1 2]
	// row 0
	// row 1
	// row 2
}

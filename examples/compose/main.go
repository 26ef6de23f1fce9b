// Compose shares one promise among three schedulers and a plain goroutine. It is the example of the README.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	// README: begin
	pool := workstealing.New(workstealing.Options{})
	defer pool.Close()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		return err
	}
	defer loop.Close()

	answer := promise.Go(ctx, pool, func(ctx context.Context) (int, error) { // a task of the pool
		a, b, err := workstealing.Join(ctx, pool, six, seven) // in parallel
		return a * b, err
	})
	echo := promise.Go(ctx, loop, func(ctx context.Context) (int, error) { // a task of the loop
		return answer.Await(ctx) // the task waits, the loop goes on
	})
	return fifo.Run(ctx, func(ctx context.Context) error { // a scheduler on this goroutine
		v, err := promise.All[int](answer, echo).Await(ctx)
		fmt.Println(v, err)
		return err
	})
	// README: end
}

func six(context.Context) (int, error)   { return 6, nil }
func seven(context.Context) (int, error) { return 7, nil }

// Compose shares one promise among three schedulers.
//
//	go run ./examples/compose
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/suspend"
)

func main() {
	ctx := context.Background()
	pool := workstealing.New(workstealing.Options{}) // starts one worker per processor
	defer pool.Close()
	loop, err := eventloop.New(eventloop.Options{}) // uses epoll on Linux
	if err != nil {
		log.Fatal(err)
	}
	defer loop.Close()

	answer := promise.Go(ctx, pool, func(ctx context.Context) (int, error) { // runs as a task of the pool
		a, b, err := workstealing.Join(ctx, pool, six, seven) // the functions six and seven run in parallel
		return a * b, err
	})
	echo := promise.Go(ctx, loop, func(ctx context.Context) (int, error) { // runs as a task of the loop
		return answer.Await(ctx) // suspends the task, not the loop
	})
	err = fifo.Run(ctx, func(ctx context.Context) error { // runs tasks on this goroutine
		v, err := suspend.Do(ctx, promise.All(answer, echo))
		fmt.Println(v, err) // prints [42 42] <nil>
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

func six(context.Context) (int, error)   { return 6, nil }
func seven(context.Context) (int, error) { return 7, nil }

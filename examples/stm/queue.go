package main

import (
	"context"
	"fmt"
	"time"

	"github.com/braidgo/braid/adapters/eventloop"
	"github.com/braidgo/braid/adapters/workstealing"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/stm/collections"
	"github.com/braidgo/braid/suspend"
)

// consume adds up orders until it receives a message from the channel end, or until a second passes without an order.
func consume(ctx context.Context, q *collections.Queue[int], end *chanx.Chan[string]) (sum int, why string, err error) {
	order, told, late := suspend.CaseOf(stm.Op(q.Take)), suspend.CaseOf(end.RecvOp()), suspend.CaseOf(suspend.After(time.Second))
	for {
		switch won, err := suspend.SelectOrdered(ctx, order, told, late); won { // orders have priority
		case order:
			sum += order.Value()
		case told:
			return sum, told.Value(), nil
		case late:
			return sum, "a second of silence", nil
		default:
			return sum, "", err
		}
	}
}

// orders sends values through a bounded queue from a task of an event loop to a task of a pool. A full queue suspends the producer, but not
// its loop. The consumer waits for an order, for a message that ends it, or for a second of silence, whichever comes first.
func orders(pool *workstealing.Pool) {
	ctx := context.Background()
	loop, err := eventloop.New(eventloop.Options{})
	if err != nil {
		panic(err)
	}
	defer loop.Close()

	q, end := collections.NewQueue[int](4), chanx.New[string](0)
	produced := promise.Go(ctx, loop, func(ctx context.Context) (int, error) {
		for i := range 100 {
			if err := stm.Atomically(ctx, func(tx *stm.Tx) error { return q.Put(tx, i+1) }); err != nil {
				return i, err
			}
		}
		return 100, end.Send(ctx, "told to end")
	})
	consumed := promise.Go(ctx, pool, func(ctx context.Context) (string, error) {
		sum, why, err := consume(ctx, q, end)
		return fmt.Sprint(sum, ", ", why), err
	})
	n, err := produced.Await(ctx)
	fmt.Println(n, err)
	fmt.Println(consumed.Await(ctx))
}

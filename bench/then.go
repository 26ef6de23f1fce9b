package main

import (
	"context"
	"sync"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var thenRows = []row{
	// An operation is a task that waits, of 5,000 in a Run of their own. The Runs before have left their coroutines. The peer is
	// goroutines that wait for a channel.
	{id: "coroutine-kept", against: "5,000 goroutines", unit: "ns", must: 1.0, aim: 0.5, open: func(m mode) (*sides, error) {
		waiting := m.of(5000, 50)
		return &sides{
			ours: timedWhole(waiting, func(n int) {
				for ; n > 0; n -= waiting {
					ended := 0
					_ = fifo.Run(context.Background(), func(ctx context.Context) error {
						var gate mvar.MVar[struct{}]
						for range waiting {
							must(0, suspend.Here().Go(func() { must(gate.Read(ctx)); ended++ }))
						}
						suspend.Yield()
						return gate.Put(ctx, struct{}{})
					})
					check(ended == waiting)
				}
			}),
			peer: timedWhole(waiting, func(n int) {
				for ; n > 0; n -= waiting {
					gate := make(chan struct{})
					var all sync.WaitGroup
					for range waiting {
						all.Go(func() { <-gate })
					}
					close(gate)
					all.Wait()
				}
			}),
			close: func() {},
		}, nil
	}},
}

package main

import (
	"context"
	"sync"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

var thenRows = []row{
	// An operation is a value that a continuation receives, which arms itself again. The peer makes a Then for each.
	pair("then-rearmed", "a Then for each value", 0.8, 0.5, func() (ours, peer func(int)) {
		ctx := context.Background()
		receive := func(n int, start func(m *mvar.MVar[int], on suspend.Executor, k func(int, error)) (again func())) {
			inFifo(func() {
				var m mvar.MVar[int]
				sum := 0
				var again func()
				again = start(&m, suspend.Here().(suspend.Executor), func(v int, err error) {
					if sum += must(v, err); sum < n {
						again()
					}
				})
				again()
				for range n {
					must(0, m.Put(ctx, 1))
					suspend.Yield()
				}
				check(sum == n)
			})
		}
		return func(n int) {
				receive(n, func(m *mvar.MVar[int], on suspend.Executor, k func(int, error)) func() {
					c := suspend.NewContinuation(m.TakeOp(), on, k)
					return func() { c.Arm(ctx) }
				})
			}, func(n int) {
				receive(n, func(m *mvar.MVar[int], on suspend.Executor, k func(int, error)) func() {
					return func() { suspend.Then(ctx, m.TakeOp(), on, k) }
				})
			}
	}),

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

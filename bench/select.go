package main

import (
	"context"

	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/suspend"
)

var selectRows = []row{
	// One value that a Select over two receives gets is an operation: the channels have no buffer, and the sender takes
	// them in turn. Making the cases is counted, once for all values.
	pair("select-2", "native select, two goroutines", 1.0, 0.5, func() (ours, peer func(int)) {
		ctx := context.Background()
		return func(n int) {
				x, y := chanx.New[int](0), chanx.New[int](0)
				inFifo(func() {
					must(0, suspend.Here().Go(func() {
						x, y := x, y
						for i := range n {
							must(0, x.Send(ctx, i))
							x, y = y, x
						}
					}))
					first, second := suspend.On(x.RecvOp()), suspend.On(y.RecvOp())
					for i := range n {
						got := first
						if must(suspend.Select(ctx, first, second)) == second {
							got = second
						}
						check(got.Value() == i)
					}
				})
			}, func(n int) {
				x, y := make(chan int), make(chan int)
				both(func() {
					x, y := x, y
					for i := range n {
						x <- i
						x, y = y, x
					}
				}, func() {
					for i := range n {
						select {
						case v := <-x:
							check(v == i)
						case v := <-y:
							check(v == i)
						}
					}
				})
			}
	}),
}

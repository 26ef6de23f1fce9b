package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
)

// Ten million tasks without a stack are alive on one fifo. Each is a callback that submits its successor, as a task that yields in a loop. All
// yield once. The first of the second turn measures the growth of the heap, after a collection, divided by their number. The peer is not
// measured: it is the figure of the paper (Li and Zdancewic, 2007: 48 bytes).
var memoryRows = []row{
	{id: "task-bytes", against: "48 bytes, the paper's, not measured", unit: "bytes", must: 1.0, aim: 0.7, rounds: 1, cold: true, open: func(m mode) (*sides, error) {
		return &sides{
			ours: func(time.Duration) (float64, error) { return yielders(m.of(10_000_000, 1000)), nil },
			peer: func(time.Duration) (float64, error) { return 48, nil },
		}, nil
	}},
}

// yielding is shared by the yielders, so that each has only its code and its remaining turns.
var yielding struct {
	*fifo.Scheduler
	n, begun   int
	before     int64
	goroutines atomic.Int64
	each       float64
}

func yielders(n int) float64 {
	y := &yielding
	y.Scheduler, y.n, y.begun, y.before = fifo.New(fifo.Options{}), n, 0, liveBytes()
	for range n {
		must(0, y.Execute(yielder(1)))
	}
	must(0, y.Run(context.Background(), func(context.Context) error { return nil }))
	check(y.begun == 2*n)
	y.Scheduler = nil
	return y.each
}

func yielder(left int) func() {
	return func() {
		y := &yielding
		if y.begun++; y.begun == y.n+1 {
			y.each = float64(liveBytes()-y.before) / float64(y.n)
		}
		if left > 0 {
			must(0, y.Execute(yielder(left-1)))
		}
	}
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

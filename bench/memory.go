package main

import (
	"context"
	"runtime"
	"time"

	"github.com/braidgo/braid/adapters/fifo"
)

// Ten million tasks without a stack are alive on one fifo, each a callback that submits its successor, which is what
// yields in a loop. All yield once, and the first of the second turn measures what the heap has grown by, after a
// collection, divided by their number. The peer is not measured: it is the figure of the paper that the row is after (Li and Zdancewic,
// 2007: 48 bytes).
var memoryRows = []row{
	{id: "task-bytes", unit: "bytes", must: 1.0, aim: 0.7, rounds: 1, cold: true, open: func() (*sides, error) {
		return &sides{
			ours: func(time.Duration) (float64, error) { return yielders(10_000_000), nil },
			peer: func(time.Duration) (float64, error) { return 48, nil },
		}, nil
	}},
}

func yielders(n int) (each float64) {
	before := liveBytes()
	s := fifo.New(fifo.Options{})
	begun := 0
	var turn func(left int) func()
	turn = func(left int) func() {
		return func() {
			if begun++; begun == n+1 {
				each = float64(liveBytes()-before) / float64(n)
			}
			if left > 0 {
				must(0, s.Execute(turn(left-1)))
			}
		}
	}
	for range n {
		must(0, s.Execute(turn(1)))
	}
	must(0, s.Run(context.Background(), func(context.Context) error { return nil }))
	check(begun == 2*n)
	return each
}

func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

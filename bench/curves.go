package main

import (
	"runtime"
	"slices"
)

// curves returns all curves. The curve mvar-table reproduces table 6.1 of Ande's thesis (2023). The curves thread-bytes, disk-reads and
// pipes come from Li and Zdancewic (2007). docs/papers.md lists all figures of the papers.
func curves() []curve {
	return append([]curve{
		{
			figure: figure{ID: "mvar-table", Title: "One value from task to task: an MVar, and native queues of one",
				About: "A value handed over, by two tasks, as in table 6.1 of Ande (2023). Serial: both on one fifo, and the goroutines with GOMAXPROCS 1. " +
					"Parallel: a fifo each on goroutines of their own, and GOMAXPROCS 2 for all.",
				X: "the two tasks are", Names: []string{"serial", "parallel"}, Y: "ns per value", Rounds: 9},
			series: []string{"MVar", "MVar, cancellable ctx", "channel of one", "channel of one, select with ctx.Done",
				"queue of one: sync.Mutex, two sync.Conds"},
			points: []float64{0, 1}, tiny: []float64{0, 1}, open: mvarTable,
		},
		{
			figure: figure{ID: "thread-bytes", Title: "Live bytes of one of n threads that yield in a loop",
				About: "The growth of the heap and the stacks, after a collection, when all have yielded once; each time in a new process.",
				X:     "threads", LogX: true, Y: "bytes per thread", LogY: true, Rounds: 3},
			series: []string{"callbacks of a fifo that submit their successors", "tasks of a fifo", "goroutines"},
			points: []float64{1000, 10_000, 100_000, 1_000_000, 10_000_000}, tiny: []float64{100, 1000}, cold: true, open: threadBytes,
		},
		{
			figure: figure{ID: "stage-tasks", Title: "Throughput, and tasks in the pipeline",
				About: "Tasks of 50 ms that go round, as in Welsh, Gribble, Brewer and Culler (2000): 1 a goroutine each, their figure 3; " +
					"2 timers of an event loop, figure 5; 3 a stage of width 1000 before the goroutines, figure 7 d, which holds T/L = 20,000 a second.",
				X: "tasks in the pipeline", LogX: true, Y: "tasks a second", LogY: true, Rounds: 3},
			series: []string{"goroutine each", "event loop", "stage, T = 1000"},
			points: []float64{100, 1000, 10_000, 100_000}, tiny: []float64{10}, cold: true, open: circling,
		},
		{
			figure: figure{ID: "stage-widths", Title: "Throughput of a stage, and tasks in the pipeline",
				About: "Tasks go round through one stage of width T, and each takes the time L, as in Welsh, Gribble, Brewer and Culler (2000), figure 7 c. A stage holds T/L tasks a second.",
				X:     "tasks in the pipeline", LogX: true, Y: "tasks a second", LogY: true, Rounds: 3},
			series: widthNames(), points: []float64{10, 100, 1000, 10_000}, tiny: []float64{10}, cold: true, open: widths,
		},
		{
			figure: figure{ID: "actor-tokens", Title: "Ten tokens in a ring of n actors",
				About: "As in Haller and Odersky (2009), figure 6. Each member passes a token on to the next. Only the passes count: each round first makes a new ring.",
				X:     "members of the ring", LogX: true, Y: "passes a second", LogY: true, Rounds: 3},
			series: []string{"actors, React", "actors, Receive", "goroutines, channels of one", "protoactor-go", "threads, channels of one"},
			points: []float64{10, 100, 1000, 10_000, 100_000, 600_000}, tiny: []float64{10}, cold: true, open: tokenRings,
		},
		{
			figure: figure{ID: "actor-speedup", Title: "Actors that divide their work, on n processors",
				About: "As in Haller and Odersky (2009), figure 7. An actor divides its work between two new actors, down to some microseconds, and adds their results up. The peer is a recursive function.",
				X:     "workers of the pool, and GOMAXPROCS", Y: "times as fast as calls", Rounds: 5},
			series: []string{"Fib: fib(32), down to fib(16)", "Integ: 4,096 pieces of 500 steps"},
			points: processors(), tiny: []float64{1}, cold: true, open: speedups,
		},
		{
			figure: figure{ID: "fetch-requests", Title: "Latencies of 10,000 requests",
				About: "As in Marlow et al. (2014), figures 6 and 7. A request renders a page of a blog from four sources, of which each call takes a millisecond and ten microseconds for each key. The times are added up and not waited for, so that a point is exact; " +
					"the number of posts follows a lognormal distribution. A post and its author are two Gets in sequence, of which braidvet makes one round. One after another: each key is a call, and the calls do not overlap; the cache is the same.",
				X: "percentile of the requests", Names: []string{"5th", "25th", "50th", "75th", "95th", "99th"}, Y: "ms", LogY: true, Rounds: 1},
			series: []string{"concurrently, in rounds", "one after another", "concurrently, after braidvet's change"},
			points: []float64{0, 1, 2, 3, 4, 5}, tiny: []float64{2}, cold: true, open: webRequests,
		},
		{
			figure: figure{ID: "disk-reads", Title: "Random reads of 4 KB from a file of 1 GB",
				About: "Each thread reads one block after the other, at random, for a third of a second, past the system's cache: tasks of an " +
					"event loop with a reactor for each processor and a File of it, tasks through suspend.Blocking, of which a limited number runs at a time, and goroutines. The measurement begins when each thread has read one block.",
				X: "threads", LogX: true, Y: "MB per second", Rounds: 3},
			series: []string{"event loop, File", "event loop, BlockingWidth 64", "event loop, BlockingWidth 1024", "goroutines"},
			points: []float64{1, 8, 64, 256, 1024, 4096, 16_384, 65_536}, tiny: []float64{1, 4}, cold: true, open: reading,
		},
		{
			figure: figure{ID: "pipes", Title: "128 busy pairs of pipes among n idle pipes",
				About: "Pipes of 4 KB, as in figure 18 of Li and Zdancewic (2007). The two threads of a pair send each other 32 KB in turn, and one waits to read from each idle pipe. " +
					"Each round opens its own pipes, which does not count.",
				X: "idle pipes", Y: "MB per second", Rounds: 5},
			series: []string{"event loop, a reactor for each processor", "goroutines", "event loop, one processor",
				"goroutines, one processor"},
			points: idlePoints(), tiny: []float64{0, 10}, cold: true, open: amongIdle,
		},
	}, slices.Concat(fibCurves(), webCurves(), idleCurves())...)
}

// processors returns the powers of two up to the number of processors.
func processors() (all []float64) {
	for n := 1; n <= runtime.NumCPU(); n *= 2 {
		all = append(all, float64(n))
	}
	return all
}

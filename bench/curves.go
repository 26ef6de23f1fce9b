package main

// curves returns all curves. The curve mvar-table reproduces table 6.1 of Ande's thesis (2023). The curves thread-bytes, disk-reads and
// pipes come from Li and Zdancewic (2007).
func curves() []curve {
	all := []curve{
		{
			id: "mvar-table", title: "Table 6.1: an MVar against native queues of one",
			about: "A value handed over, by two tasks. Serial: both on one fifo, and the goroutines with GOMAXPROCS 1. " +
				"Parallel: a fifo each on goroutines of their own, and GOMAXPROCS 2 for all.",
			x: axis{label: "the two tasks are", names: []string{"serial", "parallel"}},
			y: axis{label: "ns per value"},
			series: []string{"MVar", "MVar, cancellable ctx", "channel of one", "channel of one, select with ctx.Done",
				"queue of one: sync.Mutex, two sync.Conds"},
			rounds: 9,
			points: []float64{0, 1}, tiny: []float64{0, 1},
			open: mvarTable,
		},
		{
			id: "thread-bytes", title: "Live bytes of one of n threads that yield in a loop",
			about:  "The growth of the heap and the stacks, after a collection, when all have yielded once; each time in a new process.",
			x:      axis{label: "threads", log: true},
			y:      axis{label: "bytes per thread", log: true},
			series: []string{"callbacks of a fifo that submit their successors", "tasks of a fifo", "goroutines"},
			rounds: 3, cold: true,
			points: []float64{1000, 10_000, 100_000, 1_000_000, 10_000_000}, tiny: []float64{100, 1000},
			open: threadBytes,
		},
		{
			id: "stage-tasks", title: "Figures 3, 5 and 7: throughput and tasks in the pipeline",
			about: "Tasks of 50 ms that go round: 1 a goroutine each, which is the figure 3; 2 timers of an event loop, figure 5; " +
				"3 a stage of width 1000 before the goroutines, figure 7 d, which holds T/L = 20,000 a second.",
			x:      axis{label: "tasks in the pipeline", log: true},
			y:      axis{label: "tasks a second", log: true},
			series: []string{"goroutine each", "event loop", "stage, T = 1000"},
			rounds: 3, cold: true,
			points: []float64{100, 1000, 10_000, 100_000}, tiny: []float64{10},
			open: circling,
		},
		{
			id: "disk-reads", title: "Random reads of 4 KB from a file of 1 GB",
			about: "Each thread reads one block after the other, at random, for a third of a second: tasks of an event loop with a File " +
				"of it, tasks through suspend.Blocking, of which a limited number runs at a time, and goroutines. Counted is from when each has read one.",
			x:      axis{label: "threads", log: true},
			y:      axis{label: "MB per second"},
			series: []string{"event loop, File", "event loop, BlockingWidth 64", "event loop, BlockingWidth 1024", "goroutines"},
			rounds: 3, cold: true,
			points: []float64{1, 8, 64, 256, 1024, 4096, 16_384, 65_536}, tiny: []float64{1, 4},
			open: reading,
		},
		{
			id: "pipes", title: "Figure 18: 128 busy pairs of pipes among n idle ones",
			about: "Pipes of 4 KB. The two threads of a pair send each other 32 KB by turns, and one waits to read from each idle pipe. " +
				"Opening is not counted; each round opens its own.",
			x: axis{label: "idle pipes"},
			y: axis{label: "MB per second"},
			series: []string{"event loop, a reactor for each processor", "goroutines", "event loop, one processor",
				"goroutines, one processor"},
			rounds: 5, cold: true,
			points: idlePoints(), tiny: []float64{0, 10},
			open: amongIdle,
		},
	}
	all = append(all, webCurves("web-disk", "Figure 19: 131,072 files of 16 KB, and memory for an eighth of them",
		"Static files at random. Each server has 256 MB, the cache of the system for its files included, and begins with none.", webDisk)...)
	return append(all, webCurves("web-cached", "1,000 files of 16 KB that are cached", "The same, from memory.", webCached)...)
}

func mvarTable(b *bench, x float64) (all []measurement) {
	place := []place{tasks, fifos}[int(x)]
	for _, f := range []work{handover(place, mvarOf(bg)), handover(place, mvarOf(uncancelled)), handover(goroutines, channelOf(1)),
		handover(goroutines, channelOr(uncancelled)), handover(goroutines, condOf(1))} {
		all = append(all, b.once(wall.of(onProcs(int(x)+1, f), 1)))
	}
	return all
}

package main

const (
	often = 54 // is the number of rounds of a row whose sides run at different speeds in different rounds

	oneTaken    = "channel of one, two goroutines"
	oneSelect   = "select of a channel of one and ctx.Done"
	anacrolix   = "anacrolix/stm v0.5"
	overNet     = "the same on net, goroutines"
	pingPeer    = "two goroutines, channels of one"
	cancelPeer  = "the same without cancelling"
	fibNet      = "net/http, goroutines"
	inChannel   = "a goroutine in a channel"
	ring600k    = "600,000 goroutines, channels of one"
	ring100k    = "100,000 goroutines, channels of one"
	settledPeer = "dataloadgen, wait 1 ms: 3 dependent loads"
)

// rows returns all rows. A comment above each row, or at the function that opens the row, describes one operation.
func rows() []row {
	return []row{
		// An operation hands over one value. The contexts come from package context, and are not cancelled.
		{id: "mvar-serial", against: oneTaken, must: 0.80, aim: 0.40, rounds: often, open: handing(tasks, mvarOf(bg), channelOf(1))},
		{id: "mvar-serial-ctx", against: oneSelect, must: 0.45, aim: 0.20, rounds: often,
			open: handing(tasks, mvarOf(uncancelled), channelOr(uncancelled))},
		{id: "mvar-parallel", against: oneTaken, must: 1.5, aim: 1.0, rounds: often,
			open: fixed(onProcs(2, handover(fifos, mvarOf(bg))), onProcs(2, handover(goroutines, channelOf(1))))},
		{id: "mvar-goroutine", against: oneSelect, must: 1.0, aim: 0.75, rounds: often,
			open: handing(goroutines, mvarOf(uncancelled), channelOr(uncancelled))},

		// An operation locks, increments a counter, and unlocks.
		{id: "mutex-free", against: "sync.Mutex", must: 1.6, aim: 1.2, open: lockFree},
		{id: "mutex-contended", against: "sync.Mutex", must: 1.5, aim: 1.0, open: fresh(eight, mutexes(bg), stdMutex)},
		{id: "mutex-ctx", against: "x/sync semaphore of 1", must: 0.6, aim: 0.2, open: fresh(eight, mutexes(uncancelled), weighted)},

		// An operation reads a value that is already available.
		{id: "promise-ready", against: "sync.OnceValue, called again", must: 2.0, aim: 1.0, open: awaiting},
		{id: "lazy-ready", against: "sync.OnceValue, called again", must: 2.0, aim: 1.0, open: forcing},

		// An operation starts a task that ends at once. The tasks are started one after another, or in batches of a thousand.
		{id: "spawn/one", against: "go + WaitGroup", must: 0.5, aim: 0.3, open: fixed(spawnFifo(1), spawnGo(1))},
		{id: "spawn/many", against: "go + WaitGroup", must: 0.5, aim: 0.3, open: fixed(spawnFifo(1000), spawnGo(1000))},
		// An operation is one fork. The time to start the pool is not counted, here and below.
		{id: "fork", against: "go + WaitGroup", must: 0.25, aim: 0.10, open: forkAll},
		{id: "fib-speedup", against: "sequential", must: 0.56, aim: 0.51, rounds: 8, open: speedup},
		{id: "coroutine-kept", against: "5,000 goroutines", must: 1.0, aim: 0.5, open: keptCoroutines},
		{id: "select-2", against: "native select, two goroutines", must: 1.0, aim: 0.5, open: handing(tasks, selecting, selectingNatively)},

		{id: "cancel-cost/spmc/10", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(0, 10)},
		{id: "cancel-cost/spmc/20", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(0, 20)},
		{id: "cancel-cost/spmc/30", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(0, 30)},
		{id: "cancel-cost/mpsc/10", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(1, 10)},
		{id: "cancel-cost/mpsc/20", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(1, 20)},
		{id: "cancel-cost/mpsc/30", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(1, 30)},
		{id: "cancel-cost/mpmc/10", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(2, 10)},
		{id: "cancel-cost/mpmc/20", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(2, 20)},
		{id: "cancel-cost/mpmc/30", against: cancelPeer, must: 1.15, aim: 1.01, rounds: 48, open: cancelCost(2, 30)},
		{id: "cancel-one/last", against: "cancel 1 of 1k", must: 1.5, aim: 1.1, rounds: 3, cold: true, open: cancelOne(false, 1000, 1)},
		{id: "cancel-one/anywhere", against: "cancel 1 of 1k, in one of 1k MVars", must: 1.5, aim: 1.1, rounds: 3, cold: true,
			open: cancelOne(true, 1_000_000, 1000)},

		// The peer is the figure published by Li and Zdancewic (2007) for ten million tasks.
		{id: "task-bytes", against: "48 bytes, the paper's, not measured", must: 1.0, aim: 0.7, rounds: 1, cold: true, gauge: live,
			open: paperBytes},

		// An operation is a request. Each of 1000 connections sends a new request when it receives an answer. The client is one thread with
		// epoll.
		{id: "http-loop", against: overNet, must: 0.95, aim: 0.70, rounds: 6, open: besideServer("http", 1000, onLoop(1), onNet, serveHTTP)},
		// An operation is a round trip of 64 bytes on one of 200 connections. The TLS client uses a goroutine per connection, and the echo
		// client uses epoll.
		{id: "tls-loop", against: overNet, must: 1.10, aim: 0.90, rounds: 12, open: tlsEcho},
		{id: "echo/netpoll", against: "cloudwego/netpoll", rounds: 3, open: besideServer("echo", 200, onLoop(1), onNetpoll, echo)},
		// An operation is a round trip of 32 KB over one of 128 pairs of pipes, with a task at each end. Another 65,536 tasks wait to read,
		// each from its own FIFO. The time to open the FIFOs is not counted.
		{id: idleID, against: "the same with 0 idle", must: 1.05, aim: 1.0, open: besideIdle},

		// A connection has sent two requests, and waits for the next one with its keep-alive.
		{id: "idle-conn/http", against: "net/http", must: 0.07, aim: 0.06, rounds: 3, cold: true, gauge: live, open: idleConns("idle", "-n", "httppark", "net/http")},
		{id: "idle-conn/tls", against: "net/http, TLS", must: 0.36, aim: 0.10, rounds: 3, cold: true, gauge: live, open: idleConns("idle", "-n", "httppark, TLS", "net/http, TLS")},
		{id: "idle-conn/loop", against: "a task for each connection", must: 0.22, aim: 0.19, rounds: 3, cold: true, gauge: live,
			open: idleConns("idle", "-n", "eventloop, ServeParked", "eventloop, Serve")},
		// A WebSocket has echoed two messages, and waits for the next one. All servers are net/http's.
		{id: "idle-conn/websocket", against: "a goroutine for each connection", must: 0.30, aim: 0.20, rounds: 3, cold: true, gauge: live,
			open: idleConns("libraries/websocket", "-idle", "gobwas/ws, parked", "gobwas/ws, on a goroutine")},
		// An operation is a request to net/http, whose idle connections are parked or not: of connections that are never idle, and of
		// connections that have been parked.
		{id: "http-parked/64", against: "net/http", must: 1.1, aim: 1.0, rounds: 12, open: besideServer("net/http", 64, onHTTP(true), onHTTP(false), nil)},
		{id: "http-parked/1024", against: "net/http", must: 1.1, aim: 1.0, rounds: 12, open: besideServer("net/http", 1024, onHTTP(true), onHTTP(false), nil)},
		{id: "http-parked/pauses", against: "net/http, processor time", must: 1.5, aim: 1.2, rounds: 6, gauge: cpu, open: besidePauses(1024)},

		{id: "fibserver/p90/net-http", against: fibNet, must: 1, aim: 1, rounds: 3, cold: true, open: fibRow("p90")},
		{id: "fibserver/throughput/net-http", against: fibNet, must: 1, aim: 1, rounds: 3, cold: true, open: fibRow("throughput")},
		{id: "fibserver/costly/net-http", against: fibNet, rounds: 3, cold: true, open: fibRow("costly")},

		// An operation is a small task that computes for about a microsecond.
		{id: "pool/go", against: "go + WaitGroup", open: besidePool(byGo)},
		{id: "pool/errgroup", against: "x/sync errgroup, SetLimit", open: besidePool(byErrgroup)},
		{id: "pool/ants", against: "ants v2", open: besidePool(byAnts)},
		{id: "pool/pond", against: "pond v2", open: besidePool(byPond)},
		{id: "pool/conc", against: "conc pool", open: besidePool(byConc)},
		// An operation is a task that uses 16 KB of stack. The gauge is processor time.
		{id: "pool/stack16/go", against: "go, which grows a stack for each", must: 0.2, aim: 0.1, gauge: cpu, open: besidePoolDeep(byGo)},
		{id: "pool/stack16/ants", against: "ants v2", must: 1, aim: 0.5, gauge: cpu, open: besidePoolDeep(byAnts)},
		{id: "pool/stack16/pond", against: "pond v2", must: 0.5, aim: 0.1, gauge: cpu, open: besidePoolDeep(byPond)},
		{id: "pool/for", against: "conc iter.ForEach", open: loops},

		// An operation passes one task through all stages, or one message through all channels. The gauge is processor time.
		{id: "stage/1", against: "1 channel, select with ctx", must: 1.2, aim: 0.9, gauge: cpu, open: fixed(stages(1), channels(1))},
		{id: "stage/3", against: "3 channels, select with ctx", must: 1.0, aim: 0.7, gauge: cpu, open: fixed(stages(3), channels(3))},
		{id: "stage/10", against: "10 channels, select with ctx", must: 0.85, aim: 0.6, gauge: cpu, open: fixed(stages(10), channels(10))},
		// The pool has had 5,000 other stages, which are closed.
		{id: "stage/used-pool", against: "a pool without other stages before", must: 1.2, aim: 1.0, gauge: cpu, open: fresh(beginIn, usedPool, freshPool)},
		// A stage reads the clock twice for Stats.Service, which takes longer than the semaphore. Without these readings the must would be
		// 1.2.
		{id: "stage/do", against: "semaphore: a channel, with ctx", must: 2.7, aim: 2.0, gauge: cpu, open: fixed(inlineDo, channelSemaphore)},
		{id: "stage/do-worker", against: "a worker and a reply channel", must: 1.7, aim: 1.2, gauge: cpu, open: fixed(workerDo, replyChannel)},
		// A task performs six operations, each with 512 KB of state. The gain is that of the caches, and is smaller where they hold all.
		{id: "stage/convoys", against: "all operations of a task, one after the other", must: 1.0, aim: 0.3, gauge: cpu, open: fixed(convoys(newStates()), oneAfterTheOther(newStates()))},

		{id: "stm-counter/mutex", against: "sync.Mutex", must: 18, aim: 10, open: fresh(oneByOne, incOurs, incMutex)},
		{id: "stm-contended/mutex", against: "sync.Mutex", must: 12, aim: 8, open: fresh(byEight, incOurs, incMutex)},
		{id: "stm-transfer/locks", against: "two mutexes, in order", must: 11, aim: 8, open: fresh(transfers, transferOurs, transferLocks)},
		{id: "stm-transfer/mutex", against: "one sync.Mutex", must: 13, aim: 9, open: fresh(transfers, transferOurs, transferMutex)},
		{id: "stm-readmostly/rwmutex", against: "sync.RWMutex", must: 6, aim: 3, open: fresh(byEight, readMostlyOurs, readMostlyRWMutex)},
		{id: "stm-readmostly/mutex", against: "sync.Mutex", must: 3, aim: 2, open: fresh(byEight, readMostlyOurs, readMostlyMutex)},
		{id: "stm-case", against: "stm.Do", must: 3, aim: 1.9, open: fresh(again, stmCase, stmDo)},
		// An operation is 4,000 levels, each of which writes a variable and one of the level around it.
		{id: "stm-nested", against: "16 transactions of 250 levels", must: 4, aim: 2, open: fresh(again, nestedOnce, nestedOften)},
		// An operation passes one value through a queue of 16.
		{id: "stm-queue16/cond", against: "mutex and sync.Cond", must: 14, aim: 8, open: handing(goroutines, stmOurs, condOf(slots))},
		{id: "stm-queue16/channel", against: "channel of 16", must: 8, aim: 5, open: handing(goroutines, stmOurs, channelOf(slots))},
		{id: "stm-queue16/anacrolix", against: anacrolix, must: 0.08, aim: 0.04, open: handing(goroutines, stmOurs, stmPeer)},
		{id: "stm-queue16/fifo", against: "channel of 16, two goroutines", must: 7, aim: 4, open: handing(tasks, stmOurs, channelOf(slots))},

		// An operation is a message between two actors or two goroutines, which send it back and forth.
		{id: "actor-pingpong/react", against: pingPeer, must: 0.50, aim: 0.30, open: fixed(onFifo(pingPong(reacting)), pingPongChannels)},
		{id: "actor-pingpong/receive", against: pingPeer, must: 0.85, aim: 0.60, open: fixed(onFifo(pingPong(receiving)), pingPongChannels)},
		{id: "actor-pingpong/pool", against: pingPeer, must: 0.80, aim: 0.45, open: onPool(pingPong(reacting), pingPongChannels)},
		// An operation passes a message from one member of a ring to the next. There is only one message.
		{id: "actor-ring/600k", against: ring600k, must: 0.30, aim: 0.15, rounds: 6, open: besideRing(600_000, aFifo, reacting)},
		{id: "actor-ring/600k-pool", against: ring600k, must: 0.45, aim: 0.25, rounds: 6, open: besideRing(600_000, twoWorkers, reacting)},
		{id: "actor-ring/receive", against: ring100k, must: 1.2, aim: 1.0, rounds: 6, open: besideRing(100_000, aFifo, receiving)},
		{id: "actor-ring/receive-pool", against: ring100k, must: 1.2, aim: 1.0, rounds: 6, open: besideRing(100_000, twoWorkers, receiving)},
		// An operation is a message. One actor receives messages from several goroutines.
		{id: "actor-flood/1", against: "protoactor-go", must: 0.7, aim: 0.35, open: flood(1)},
		{id: "actor-flood/8", against: "protoactor-go", must: 0.6, aim: 0.35, open: flood(8)},
		{id: "actor-spawn/fifo", against: "go + channel", must: 1.3, aim: 0.7, open: fixed(onFifo(spawnActors), spawnWithChannel)},
		{id: "actor-spawn/pool", against: "go + channel", must: 1.9, aim: 0.7, open: onPool(spawnInTask, spawnWithChannel)},
		// An operation is the end of one of many actors, all of which watch the same hub.
		{id: "actor-watchers", against: "the end of an actor that watches nothing", must: 3, aim: 1.5, rounds: 6, open: fixed(onFifo(watchersEnd(true)), onFifo(watchersEnd(false)))},
		{id: "actor-ask", against: "go, a channel, a fresh channel for the reply", must: 0.9, aim: 0.5, open: fixed(onFifo(asks), asksByChannel)},
		{id: "actor-bytes/react", against: inChannel, must: 0.18, aim: 0.15, rounds: 3, cold: true, gauge: live, open: bytesBeside("react")},
		{id: "actor-bytes/receive", against: inChannel, must: 1.5, aim: 1.25, rounds: 3, cold: true, gauge: live, open: bytesBeside("receive")},

		// An operation is the whole work, one Run, or one chain of loads. The gauge cpu adds up the time of all processors.
		{id: "fetch-chain10", against: "dataloadgen, wait 1 ms: 10 dependent loads", must: 0.01, aim: 0.004,
			open: fixed(gets(10), chainLoader(10))},
		{id: "fetch-bulk-1ms", against: "a loop by hand, on a source of 1 ms", must: 2.5, aim: 1.4,
			open: fixed(ourPosts(slow, true), handPosts(slow))},
		{id: "fetch-bulk-1ms-loader", against: "dataloadgen, wait 1 ms, on a source of 1 ms", must: 1.0, aim: 0.6,
			open: fixed(ourPosts(slow, true), loaderPosts(slow, wait1, true))},
		{id: "fetch-item-cpu", against: "dataloadgen, wait 1 ms, goroutine each", must: 2.0, aim: 0.8, gauge: cpu,
			open: fixed(warmed(ourPosts(quickly, false)), warmed(loaderPosts(quickly, wait1, false)))},
		{id: "fetch-item-wall", against: "dataloadgen, default wait 16 ms", must: 0.7, aim: 0.3,
			open: fixed(ourPosts(quickly, false), loaderPosts(quickly, 16*wait1, false))},
		{id: "fetch-bulk-cpu", against: "dataloadgen, wait 1 ms", must: 1.2, aim: 0.7, gauge: cpu,
			open: fixed(warmed(ourPosts(quickly, true)), warmed(loaderPosts(quickly, wait1, true)))},
		{id: "fetch-bulk-allocs", against: "dataloadgen, wait 1 ms", must: 1.2, aim: 0.8, gauge: allocs,
			open: fixed(ourPosts(quickly, true), loaderPosts(quickly, wait1, true))},
		{id: "fetch-run", against: "10 µs: a Run with one Get", must: 1.0, aim: 0.5, open: within(10_000, gets(1))},
		{id: "fetch-run-allocs", against: "40: a Run with one Get", must: 1.0, aim: 0.5, gauge: allocs, open: within(40, gets(1))},
		{id: "fetch-run-empty", against: "3 µs: an empty Run", must: 1.0, aim: 0.5, open: within(3_000, gets(0))},
		{id: "fetch-run-empty-allocs", against: "15: an empty Run", must: 1.0, gauge: allocs, open: within(15, gets(0))},
		{id: "fetch-hit", against: "dataloadgen, a value that is there", must: 3.0, aim: 2.0, open: fixed(hits, loaderHits)},
		{id: "fetch-settled-idle", against: settledPeer, must: 1.0, aim: 0.5, cold: true, open: settled(0)},
		{id: "fetch-settled-busy2", against: settledPeer, must: 1.0, aim: 0.5, cold: true, open: settled(2)},
		{id: "fetch-settled-busy8", against: settledPeer, must: 1.0, aim: 0.5, cold: true, open: settled(8)},

		{id: "simulation-seeds", against: "goroutines over loopback, no faults", must: 0.9, aim: 0.4, open: fixed(simulatedSeeds, overLoopback)},
		{id: "simulation-step", against: "the two switches of iter.Pull", must: 2, aim: 1.5, open: fixed(simulatedSteps, switches)},
	}
}

// Package braid is the front page of a library of synchronisation primitives that work on any scheduler.
//
// A task of an event loop, a task of a work-stealing pool, a callback of a GUI and a plain goroutine can wait for one mutex, promise or channel
// of this library. A wait suspends only its task, ends with its context, and loses nothing.
//
// # Goroutines and services
//
//   - [github.com/braidgo/braid/mutex]: a mutual exclusion lock and a read-write lock that tasks of any scheduler can share, and whose
//     waits a context can cancel
//   - [github.com/braidgo/braid/cond]: a condition variable whose Wait takes a context
//   - [github.com/braidgo/braid/semaphore]: a weighted semaphore whose Acquire takes a context
//   - [github.com/braidgo/braid/chanx]: a channel whose Send and Recv take a context, and return errors where Go's channels panic
//   - [github.com/braidgo/braid/promise]: a value that is set once and that any number of tasks can await
//   - [github.com/braidgo/braid/mvar]: a variable that is empty or holds one value
//   - [github.com/braidgo/braid/lazy]: a value that is computed by the first task that forces it
//   - [github.com/braidgo/braid/latch]: a Latch, which opens after a number of events, and a Barrier, at which a fixed number of tasks wait
//     for each other
//   - [github.com/braidgo/braid/watch]: a variable whose changes any number of tasks can wait for, such as a configuration, the current
//     leader, or the state of a connection
//   - [github.com/braidgo/braid/broadcast]: passes every published value to all subscribers
//   - [github.com/braidgo/braid/rate]: a rate limiter and a ticker, on the clock of the caller's scheduler
//   - [github.com/braidgo/braid/keyed]: locks, semaphores and a cache by key, for keys that are not known in advance, such as users, files
//     or hosts
//   - [github.com/braidgo/braid/respool]: pools of resources that are expensive to open, such as database connections, for many tasks to
//     share
//   - [github.com/braidgo/braid/scope]: structured concurrency across schedulers: a call starts tasks, each on any scheduler, and returns
//     after all of them have ended
//   - [github.com/braidgo/braid/cancel]: contexts for large numbers of waiting tasks
//   - [github.com/braidgo/braid/suspend]: connects synchronisation primitives with schedulers, and has Select, Then and Sleep for their
//     users
//   - [github.com/braidgo/braid/suspend/census]: shows which tasks wait for each other, and why a program makes no progress
//   - [github.com/braidgo/braid/adapters/httppark]: serves net/http without a goroutine for each idle connection
//
// # Loops, GUIs and pools
//
//   - [github.com/braidgo/braid/adapters/callback]: turns a foreign event loop into a scheduler
//   - [github.com/braidgo/braid/adapters/eventloop]: a scheduler that performs I/O with its own event loop
//   - [github.com/braidgo/braid/adapters/workstealing]: a scheduler that runs tasks on several workers, and fork-join functions that run on
//     it: Join, Do, For and Reduce
//   - [github.com/braidgo/braid/adapters/limited]: a scheduler whose tasks are goroutines, of which at most n run in parallel
//   - [github.com/braidgo/braid/adapters/fifo]: a scheduler that runs tasks one after another, on the goroutine that calls Run, in the
//     order in which they become runnable
//   - [github.com/braidgo/braid/adapters/netstack]: runs gVisor's TCP/IP stack inside the program (a separate module)
//   - [github.com/braidgo/braid/suspend/sched]: the capabilities that a scheduler may supply to package suspend, besides starting tasks
//
// # Overload, batches, transactions and actors
//
//   - [github.com/braidgo/braid/stage]: puts a bounded queue and a concurrency limit in front of a function, so that a server keeps its
//     throughput under overload
//   - [github.com/braidgo/braid/stage/view]: shows the figures of stages as text, as JSON, and as a web page that loads nothing from other
//     servers
//   - [github.com/braidgo/braid/stage/prom]: exports the figures of stages and schedulers to Prometheus (a separate module)
//   - [github.com/braidgo/braid/stage/otel]: exports the figures of stages and schedulers to OpenTelemetry (a separate module)
//   - [github.com/braidgo/braid/stage/jetstream]: distributes a stage over several machines (a separate module)
//   - [github.com/braidgo/braid/fetch]: batches requests without futures, thunks or timers: a fetch looks like a function call, and all
//     fetches that wait at the same time are sent together
//   - [github.com/braidgo/braid/fetch/fetchtest]: helps to test code that uses package fetch
//   - [github.com/braidgo/braid/stm]: software transactional memory: a transaction reads and writes variables, and takes effect atomically
//     or not at all
//   - [github.com/braidgo/braid/stm/collections]: transactional collections: a Map, a Queue and a Slot
//   - [github.com/braidgo/braid/actor]: actors that can receive and react, after Haller and Odersky ("Actors that unify threads and
//     events", 2007), on any scheduler
//   - [github.com/braidgo/braid/actor/natsactor]: connects actors in different processes through NATS (a separate module)
//
// # Tests with seeds, and tools
//
//   - [github.com/braidgo/braid/simulation]: runs a whole distributed program in one process: its nodes, the links between them, crashes,
//     and a virtual clock
//   - [github.com/braidgo/braid/simulation/nemesis]: injects faults into the nodes of a simulation.World: partitions, crashes, pauses,
//     wrong clocks and slow disks
//   - [github.com/braidgo/braid/simulation/disk]: defines the file operations for a program whose data must survive crashes
//   - [github.com/braidgo/braid/simulation/hunt]: runs ordinary tests of any Go module in many orders of their goroutines, until one fails
//     (a command)
//   - [github.com/braidgo/braid/simulation/overlay]: prints the path of a file for the go command's -overlay flag, for a runtime in which a
//     seed decides more (a command)
//   - [github.com/braidgo/braid/adapters/random]: a scheduler for tests, which picks the next runnable task at random, from a seed
//   - [github.com/braidgo/braid/suspendtest]: tests schedulers and primitives that are built on package suspend
//   - [github.com/braidgo/braid/suspendtest/linear]: checks whether concurrent operations are linearizable, that is, whether their results
//     are possible in a sequential order
//   - [github.com/braidgo/braid/suspendtest/atomic]: replaces sync/atomic in a primitive that suspendtest.Explore checks access by access
//   - [github.com/braidgo/braid/braidvet/cmd/braidvet]: finds mistakes in the use of Braid that compile, and that no test of a quiet
//     machine shows (a command)
//   - [github.com/braidgo/braid/braidvet/plugin]: braidvet's analyzers as a module plugin of golangci-lint (a separate module)
//   - [github.com/braidgo/braid/braidvet]: the analyzers of the command braidvet: they find mistakes in the use of Braid that compile (a
//     separate module)
//
// # Where to go next
//
// README.md has a first program. docs/choosing.md says which primitive and which scheduler to use, and when to stay with the standard
// library. fetch, stage, stm, actor, simulation and simulation/hunt have a README that introduces them. docs has tutorials: a scheduler and
// a primitive of your own, tests of cancellation, a GUI, JavaScript, and small programs with Braid and as usual. docs/design.md has the
// decisions and their reasons, and examples/README.md lists programs to run.
package braid

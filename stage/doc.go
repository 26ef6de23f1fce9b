// Package stage puts a bounded queue and a concurrency limit in front of a function, so that a server keeps its throughput under
// overload.
//
// An overloaded server that starts a goroutine for each request spends most of its time on clients that have given up. A stage
// rejects requests early, and finishes the requests that it accepts:
//
//	db := stage.New("db", query, stage.Options{Width: 40, Queue: 160, Reject: true})
//	row, err := db.Do(ctx, key) // stage.ErrOverload if 160 tasks are waiting
//
// A [Stage] consists of a queue, a handler and a number of workers. Up to Width tasks are in progress, and up to Queue tasks wait.
// When the queue is full, a further task waits for room, or with Options.Reject is rejected. Options.Delay sheds tasks that
// have waited too long, Prioritize says which tasks begin first, and a [Limiter] such as [Climb] adjusts the width. [Pipe] connects
// stages in series, a shared [Pool] runs several stages on the same workers, [Replicate] distributes tasks over copies of a stage,
// and [Each] feeds a sequence through a flow.
//
// The workers run on any scheduler, such as plain goroutines, a work-stealing pool, an event loop or package fifo. A stage that
// stays idle has no workers.
//
// Each accepted task has exactly one fate: it is completed, it fails, it is late, or its caller cancels it. [Stats] counts the
// fates, and the counts always add up.
//
// A semaphore only limits concurrency. Use package semaphore if all callers may wait, and scope.Limit for the children of one task.
//
// The design follows Welsh, Gribble, Brewer and Culler, "A design framework for highly concurrent systems" (2000), and SEDA (2001),
// but without SEDA's thread controller.
package stage

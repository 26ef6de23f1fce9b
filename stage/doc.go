// Package stage puts a queue and a width in front of work, so that an overloaded server goes on at its capacity.
//
// A server that starts a goroutine for each request does most of its work for clients that have given up. A stage refuses
// early, and finishes the work that it accepts:
//
//	db := stage.New("db", query, stage.Options{Width: 40, Queue: 160, Full: stage.FullReject})
//	row, err := db.Do(ctx, key) // stage.ErrOverload if 160 wait already
//
// A [Stage] is a queue, a handler, and a number of workers: up to Width tasks are in progress, Queue tasks wait, and a task
// that finds the queue full waits for room or is rejected, by its Options. Delay sheds the tasks that have waited
// too long, Prioritize says which begin first, and a [Limiter] such as [Climb] finds the width. [Pipe] puts stages behind one another, a shared [Pool] runs
// several on the same workers, [Replicate] puts copies beside one another, and [Each] feeds a sequence through.
//
// Workers are tasks of any scheduler: plain goroutines, a work-stealing pool, an event loop, fifo. An idle stage holds
// none.
//
// A task that a stage has accepted meets exactly one fate: it is completed, it fails, it is late, or its caller has cancelled
// it. [Stats] count the fates, and always add up.
//
// A semaphore bounds the width alone: use package semaphore where all callers may wait, and scope.Limit for the children of
// one task.
//
// The design comes from Welsh, Gribble, Brewer and Culler, "A design framework for highly concurrent systems" (2000), and from
// SEDA (2001), without its thread controller.
package stage

// Package braid is the front page of a library of synchronisation primitives that work on any scheduler.
//
// A task of an event loop, a task of a work-stealing pool, a callback of a GUI and a plain goroutine can wait for one mutex,
// one promise or one channel of this library. A wait suspends only its task, ends with its context, and loses nothing.
//
// # Goroutines that need a wait with a context
//
// No scheduler is needed. [github.com/braidgo/braid/mutex], [github.com/braidgo/braid/cond],
// [github.com/braidgo/braid/semaphore], [github.com/braidgo/braid/chanx], [github.com/braidgo/braid/mvar],
// [github.com/braidgo/braid/promise], [github.com/braidgo/braid/lazy] and [github.com/braidgo/braid/latch] take a context in each
// blocking method. [github.com/braidgo/braid/suspend.Select] waits for any of them at once.
// [github.com/braidgo/braid/scope] is structured concurrency, and [github.com/braidgo/braid/cancel] a context for many waiters.
//
// # A loop whose handlers must wait
//
// [github.com/braidgo/braid/adapters/callback] makes a scheduler of any loop that can run a function: a GUI toolkit, gnet,
// netpoll, a JavaScript engine. Package [github.com/braidgo/braid/suspend] says what a scheduler of your own has to supply,
// [github.com/braidgo/braid/suspendtest] checks that it does, and examples/scheduler is one to read.
//
// # An event loop and a pool in one program
//
// [github.com/braidgo/braid/adapters/eventloop] runs connections, [github.com/braidgo/braid/adapters/workstealing] computes,
// [github.com/braidgo/braid/adapters/fifo] runs tasks on the calling goroutine in a fixed order, and
// [github.com/braidgo/braid/adapters/random] in an order that a seed decides, for tests.
//
// # Where to go next
//
// README.md has a first program. docs/choosing.md says which primitive and which scheduler to use, and when to stay with the standard library.
// docs has tutorials: a scheduler and a primitive of your own, tests of cancellation, a GUI, JavaScript, eight programs, and the way from
// what you have to Braid. docs/design.md has the decisions and their reasons.
package braid

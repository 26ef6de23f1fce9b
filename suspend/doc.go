// Package suspend is the waist between synchronisation primitives and schedulers: a primitive suspends the calling task
// through it, whatever runs that task, and a scheduler says through it how its tasks are parked.
//
// # Performing operations
//
// Who uses primitives needs little of this package. A blocking method takes a context, which is for cancellation and
// nothing else: the scheduler is found by the calling goroutine, so any context will do, also context.Background() in a
// task of an event loop. A method named like an operation with Op at its end returns it as a value, an [Op], which is
// performed by [Do], which waits; by [Then], which has a continuation called; or as a [Case] of a [Select]. [Map] and
// [Choose] make one operation of others; [After] and [Done] are timeouts and contexts as operations.
//
// There is no such value for what could not lose a Select without a trace: Cond.Wait releases its lock, Barrier.Wait
// arrives, MVar.Modify, Lazy.Force, Join and scope.Run run a function.
//
// [Here] is the scheduler of the calling task, [Yield] lets others run, [Sleep] waits for a time, [Blocking] runs what
// blocks natively while only the task waits, and [Pull] is iter.Pull for sequences that suspend.
//
// # Writing a primitive
//
// A primitive has a [Guard], held for a few instructions, and a [Queue] or several of who waits. A [Source] says what an
// operation is: [Wait] performs it, in direct style, and [OpOf] makes an Op of it. What does not fit is a [Suspend]
// whose block publishes its [Resumer] under the guard. The
// rules: look and queue under one guard; take waiters off until a Resume says true, and commit what that means before
// the guard is released; a waiter whose wait was cancelled removes itself, in its own task, and if others waited
// behind it that could be served now, it serves them.
//
// # Writing a scheduler
//
// A scheduler supplies a [Task], which parks and unparks, and runs its tasks under [Bind]. That is all; package
// suspendtest has a scheduler of forty lines, and a conformance kit that holds any scheduler to what this package
// promises on its tasks. [Self] parks the caller of a scheduler that is driven by its caller; [Thread] parks
// goroutines. [Enter] is Bind for coroutines.
//
// # The memory model
//
// What happens before a Resume that returns true happens before the return of its Suspend.
package suspend

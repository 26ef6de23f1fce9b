// Package suspend is the waist between synchronisation primitives and schedulers. A primitive suspends the calling task through it, on
// any scheduler. A scheduler says through it how its tasks are parked.
//
// # Performing operations
//
// A user of primitives needs little of this package. A blocking method takes a context, which is for cancellation and nothing else. The
// scheduler is found by the calling goroutine, so any context will do, also context.Background() in a task of an event loop.
//
// A method whose name ends with Op returns the operation as a value, an [Op]. [Do] performs it and waits. [Then] calls a continuation. A
// [Select] performs one of several, each a [Case] made by [On], or any [Selectable]. [SelectOrdered] prefers the first, and [TrySelect] does not wait:
//
//	lock, late := suspend.On(mu.LockOp()), suspend.On(suspend.After(time.Second))
//	switch won, err := suspend.Select(ctx, lock, late); won {
//	case lock:
//		defer mu.Unlock()
//	case late:
//		return errLate
//	default:
//		return err // ctx is done
//	}
//
// [Map] and [Choose] make one operation of others. [After] and [Done] are timeouts and contexts as operations. Operations that could not
// lose a Select without a trace have no Op: Cond.Wait releases its lock, Barrier.Wait arrives, and MVar.Modify, Lazy.Force, Join and
// scope.Run run a function.
//
// [Here] is the scheduler of the calling task, [Yield] lets others run, and [Sleep] waits for a time. [Now], [AfterFunc] and [Random] are
// the clock, the timers and the random numbers of that scheduler. [Blocking] and [Call] run code that blocks natively while only the task
// waits. [Pull] is iter.Pull for sequences that suspend. [Lazily] makes waiting cheaper where a late cancellation will do.
//
// [Err] is the error of a context that is done. [ErrClosed], [ErrEnded], [ErrAbandoned] and [PanicError] are the errors that the packages
// share, in the sense of errors.Is and errors.As.
//
// # Writing a primitive
//
// A primitive has a [Guard], held for a few instructions, and a [Queue] or several for its waiters. A [Source] describes an operation.
// [Wait] performs it, in direct style, and [OpOf] makes an Op of it. An operation that does not fit is a [Suspend] whose block publishes
// its [Resumer] under the guard. There are three rules:
//   - look and queue under one guard;
//   - take waiters off until a Resume says true, and commit the change before the guard is released;
//   - a cancelled waiter removes itself, in its own task, and serves the waiters behind it that could go on now.
//
// A fast path begins with [Preemptible], or with [Point] if it never suspends, so that tests can interleave it. [LockAll] locks several
// guards without a deadlock, and [UnlockAll] unlocks them. [AllowLazy] permits a lazy cancellation. [Shield] puts off the end of the task.
// [Forbidden] reports whether suspending is a mistake, and a [Ban], made by [NewBan], makes it a mistake. docs/primitive.md is a
// tutorial, and suspendtest.Explore checks the result.
//
// # Writing a scheduler
//
// A scheduler supplies a [Task], which parks and unparks, and runs its tasks under [Bind]. That is all. docs/scheduler.md is a
// tutorial, and suspendtest.Scheduler a conformance kit. [Self] parks the caller of a scheduler that is driven by its caller, and
// [Thread] parks goroutines. [Current] is the Task that is bound.
//
// A scheduler of coroutines uses [Enter] instead of Bind: its [Bound] kills a task, its [Entered] ends the binding, and a Task that is a
// [Switcher] leaves its switches to the function that suspends.
//
// A [Spawner] starts tasks, and [Goroutines] does so without a scheduler. An [Executor] runs callbacks. More capabilities are optional:
// [Rand], [Timers], [Clock], [Blocker], [Watcher], [Holder] and [Same]. [As] finds them, and [Within] finds a scheduler, through wrappers.
// [Stats] are figures for dashboards.
//
// # The memory model
//
// Code before a Resume that returns true happens before the return of its Suspend.
package suspend

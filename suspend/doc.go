// Package suspend connects synchronisation primitives with schedulers, and has Select, Then and Sleep for their users. A primitive suspends
// its caller through this package, on any scheduler. A scheduler supplies a Task for each of its tasks, so that this package can park and
// unpark them. docs/design.md has a picture of one wait.
//
// # Performing operations
//
// Users of primitives need little of this package. A blocking method takes a context, which serves only for cancellation. The
// method finds the scheduler by the calling goroutine, so any context will do, even context.Background() in a task of an event
// loop.
//
// A method whose name ends in Op returns an operation as a value, an [Op]. [Do] performs an Op and waits for its result. [Then]
// passes the result to a continuation instead. [Select] performs one of several operations, each a [Case] made by [CaseOf]. A
// [Selectable] is a Case of any type. [SelectOrdered] prefers the first case, and [TrySelect] does not wait:
//
//	lock, late := suspend.CaseOf(mu.LockOp()), suspend.CaseOf(suspend.After(time.Second))
//	switch won, err := suspend.Select(ctx, lock, late); won {
//	case lock:
//		defer mu.Unlock()
//	case late:
//		return errLate
//	default:
//		return err // ctx has ended
//	}
//
// [Map] and [Choose] make an Op from other Ops. [After] returns a timeout as an Op, and [Done] returns the end of a context as an
// Op. An operation has no Op if it would have an effect even when it loses a Select: Cond.Wait releases its lock, Barrier.Wait
// arrives, and MVar.Modify, Lazy.Force, Join and scope.Run call a function. A Case belongs to one Select at a time.
//
// [Here] returns the calling task's scheduler, [Yield] lets other tasks run, and [Sleep] waits for a duration. [Now] and [Random]
// use that scheduler's clock and random numbers. [AfterFunc] starts a timer of a scheduler. [Blocking] runs a function that blocks
// its goroutine, while only the calling task waits, and [BlockingValue] one with a result. [Pull] and [Pull2] are iter.Pull and
// iter.Pull2 for sequences that suspend. [Lazily] makes waiting cheaper, if a cancelled wait need not return at once.
//
// A sequence of values that may end early is an iter.Seq2 of values and errors, such as chanx.Chan.All and scope.Stream return. A
// value has a nil error. After a clean end, such as a Close, the loop ends. If the sequence ends for another reason, the reason is
// the error of the last pair, beside a zero value. A loop over such a sequence must look at the error. In stage.Each, pairs before the
// last may have errors, too, namely the errors of tasks that have failed.
//
// [Err] returns the cancellation error of a context that has ended. The packages of this module share the errors [ErrClosed],
// [ErrEnded], [ErrAbandoned] and [PanicError]. Test for them with errors.Is and errors.As, because most packages wrap them.
//
// # Writing a primitive
//
// A primitive has a [Guard], which it holds for a few instructions, and a [Queue] for each kind of waiter. A [Source] describes an
// operation. [Wait] performs a Source directly, and [OpOf] makes an Op from a Source. An operation that no Source can describe
// calls [Suspend]. Its block publishes the [Resumer] under the guard. There are three rules:
//   - Check the state and queue the waiter in one critical section of the guard.
//   - Take waiters off the queue until a Resume returns true, and commit the change before the guard is unlocked.
//   - A cancelled waiter removes itself, in its own task. If waiters behind it may then proceed, they must not wait for that task to
//     run: the waiter names the object as its [Inheritor], which whoever ends the context calls (see [Resumer.LeaveTo]).
//
// A fast path begins with [Preemptible], or [Point] if it never suspends, so that tests can switch tasks. [Guards] are locked
// together without a deadlock. [WaitLazily] permits a lazy cancellation. [Shield] delays a kill of the calling task. [Forbidden]
// reports whether a Suspend would panic. [NewBan] makes a [Ban], which forbids Suspend in a piece of code. docs/primitive.md is a
// tutorial, and suspendtest.Explore is a model checker.
//
// # Writing a scheduler
//
// A scheduler supplies a [Task], and runs its tasks under [Bind]. Nothing else is required. docs/scheduler.md is a tutorial, and
// suspendtest.Scheduler is a conformance kit. A scheduler that runs on its caller's goroutine parks the caller with [Self].
// [Current] returns the bound Task.
//
// A scheduler is a [Spawner] if it starts tasks, and an [Executor] if it runs callbacks. Programs without a scheduler use
// [Goroutines], a Spawner. Package sched has further capabilities: timers, a clock, random numbers, statistics. [As] finds a
// capability even if the scheduler is wrapped in another Spawner, and [Within] reports whether the caller runs on a given
// scheduler.
//
// A scheduler whose tasks are coroutines calls [Enter] instead of Bind. The [Bound] that Enter returns can kill the task, and the
// [Entered] ends the binding. If the Task is a sched.Switcher, the function that suspends switches coroutines itself, and does not
// call Park.
//
// # The memory model
//
// A Resume that returns true synchronizes before the return of its Suspend.
//
// # Ends
//
// A type with an end has Close() error. If there is work to wait for, the type also has Shutdown(ctx) error, as an http.Server has. Both
// refuse new work at once, with an error that names the package and wraps [ErrClosed]. The connections, listeners and files of
// adapters/eventloop and adapters/netstack fail with net.ErrClosed or os.ErrClosed instead, as those of packages net and os do.
//
// Shutdown lets the accepted work finish. If ctx ends first, Shutdown does the rest as Close does, but never waits for it, and returns the
// cancellation error. Once the end is complete, Shutdown returns nil even after the end of ctx. A first Shutdown whose ctx has ended may
// return the cancellation error although there is no work, because even an idle object may need a moment to end.
//
// A Shutdown of a scheduler refuses the new work of its own tasks, too: a scope.Map on suspend.Here() then fails with the error of the
// scheduler, and a continuation of [Then] whose result comes later runs on a goroutine of its own. So shut down the listeners and stages
// first, and the scheduler last.
//
// Close does not let the work finish. It fails the work that has not begun, cancels the work that has, and tells whoever waits for it.
// Close then waits only where nobody else would learn how the work ends:
//   - The Close of a scheduler waits for all tasks. A scheduler cannot cancel a task, so a task that is lost would be lost in silence.
//   - The Close of a scope.Group, and of a session or a shared source of package fetch, waits until all that it has cancelled has ended.
//     So does the Shutdown of a Group whose ctx has ended.
//
// So after a deferred Close of one of these, none of its tasks runs any more. A timer of AfterFunc is no task: if its time comes after the
// end of the scheduler, its function runs on a goroutine of its own. A stage and a listener are servers: their Close returns at once, and
// the Close of a stage returns an error if it has given up tasks. A semaphore, a channel or another value without work of its own has only
// Close, which never waits.
//
// A second Close of what waits, waits in the same way, and returns nil or the same error. A second Close of a value, such as a semaphore, a
// channel or a respool.Pool, returns its error that wraps ErrClosed. A second Close of a connection or a file returns net.ErrClosed or
// os.ErrClosed.
package suspend

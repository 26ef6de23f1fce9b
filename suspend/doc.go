// Package suspend connects synchronisation primitives with schedulers, and has Select, Then and Sleep for their users. A primitive suspends
// its caller through this package, on any scheduler. A scheduler supplies a Task for each of its tasks, so that this package can park and
// unpark them.
//
// # One wait
//
// A task locks the guard of an object, and looks. If it cannot go on, it puts a Resumer into the queue of the object, in the same critical
// section, so that no wake-up falls in between. It unlocks the guard and parks: its scheduler runs other tasks.
//
// Later another task takes the Resumer off the queue, and calls Resume with a value. Or the context ends. Both change one word, so exactly one of
// them wins. If Resume returns true, the value is the waiter's. If it returns false, the caller still has the value, and gives it to the next in
// the queue. A waiter that was cancelled removes itself from the queue when it runs again. If others behind it could go on before that, they do
// not wait for it: whoever ends the context serves them, too. docs/design.md has this as a picture.
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
// the error of the last pair, with a zero value. A loop over such a sequence must look at the error. In stage.Each, pairs before the
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
// A type with an end has Close() error. If there is work to wait for, it also has Shutdown(ctx) error, which lets the accepted work finish. Both
// refuse new work at once, with an error that wraps [ErrClosed]; a Close waits only where otherwise a task could be lost in silence.
// docs/choosing.md has the rule, and what each type does.
package suspend

package suspend

// A Task parks and unparks one task of a scheduler. Park and Unpark work as for a thread, with one permit: an Unpark lets one Park
// return, even if the Unpark comes first.
//
// The task itself calls Park, in a loop, because Park may return without an Unpark. Unpark may be called from any goroutine, on any
// scheduler, under any lock, and at any time, even after the task has ended. It makes a parked task runnable, and otherwise only
// stores the permit. It must not block, and must not run the task before it returns. It may take a lock under which no foreign code
// is called.
//
// To end a parked task, cancel its context. If Park panics or exits its goroutine, a Wait or a Select ends as after a cancellation,
// but a value, a lock or a turn that was already delivered is lost. After a plain Suspend, the Resumer stays where block has
// published it, and its Resume returns false.
//
// A Task may have three more methods. Yield() lets other tasks run before it returns. Spawner() Spawner returns the task's scheduler,
// which may have more capabilities, see package sched. Unwrap() Task returns the Task that this one wraps, whose Yield and Spawner count
// where the wrapper has none.
type Task interface {
	Park()
	Unpark()
}

package suspend

// A Task is supplied by a scheduler, which can hold it back and let it go on. Park and Unpark work as for a thread,
// with one permit. An Unpark lets one Park through, even if the Unpark comes first.
//
// The task itself calls Park, in a loop. Park may return without an Unpark. Unpark may come from any goroutine, on any scheduler, under
// locks, at any time, also when the task has ended. It makes a parked task runnable, and otherwise leaves only the permit. It must not
// block and must not run the task before it returns. It may take a lock under which nothing foreign is called.
//
// To end a parked task, cancel its context. If Park panics instead, or ends its goroutine, that ends a Wait or a Select
// as a cancellation does. But a value, a lock or a turn that was already delivered is lost. The waiter of a plain Suspend stays where block
// put it, and is refused.
//
// A Task may have two more methods. Yield() lets others run before the task goes on. Spawner() Spawner returns the scheduler of the task,
// which may have more capabilities: see Timers, Clock, Rand, Blocker and Holder.
type Task interface {
	Park()
	Unpark()
}

// A Switcher is a Task that is a coroutine. It leaves its switches to the function that suspends, instead of making
// them in Park: after a switch the processor predicts no return correctly, 10 ns each, so there are to be few.
//
// Leave, or LeaveReady in a Yield, returns next, yield or neither. The function calls next until Back returns none, and
// then yield if there is one. next resumes another coroutine, and yield resumes the coroutine that has resumed
// this one.
type Switcher interface {
	Task
	Leave() (next func() (struct{}, bool), yield func(struct{}) bool)
	LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool)
	Back() (next func() (struct{}, bool), yield func(struct{}) bool)
}

// Thread returns a Task that parks a goroutine natively, for adapters of goroutine pools to decorate and bind.
// It belongs to the goroutine that parks it.
func Thread() Task { return make(thread, 1) }

// The buffered element is the permit.
type thread chan struct{}

func (t thread) Park() { <-t }

func (t thread) Unpark() {
	select {
	case t <- struct{}{}:
	default:
	}
}

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
// A Task may have two more methods. Yield() lets other tasks run before it returns. Spawner() Spawner returns the task's scheduler,
// which may have more capabilities: see Timers, Clock, Rand, Blocker and Holder.
type Task interface {
	Park()
	Unpark()
}

// A Switcher is a Task that is a coroutine. The function that suspends such a task makes the switches itself, instead of calling
// Park. This keeps the number of frames small, because the processor mispredicts every return after a switch, at 10 ns each.
//
// Leave, or LeaveReady in a Yield, returns one of the functions next and yield, or neither. The function that suspends calls next,
// which resumes another coroutine. Then it calls Back, and repeats this until Back does not return a next. Finally it calls yield,
// if there is one. yield resumes the coroutine that has resumed this one.
type Switcher interface {
	Task
	Leave() (next func() (struct{}, bool), yield func(struct{}) bool)
	LeaveReady() (next func() (struct{}, bool), yield func(struct{}) bool)
	Back() (next func() (struct{}, bool), yield func(struct{}) bool)
}

// Thread returns a Task that parks a goroutine natively. An adapter for a goroutine pool can decorate and bind it. The Task belongs
// to the goroutine that parks it.
func Thread() Task { return make(thread, 1) }

// A thread is a channel with a buffer of one, which holds the permit.
type thread chan struct{}

func (t thread) Park() { <-t }

func (t thread) Unpark() {
	select {
	case t <- struct{}{}:
	default:
	}
}

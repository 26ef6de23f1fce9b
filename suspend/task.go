package suspend

// A Task is supplied by a scheduler, which can hold it back and let it go on. Park and Unpark are those of a thread, with one permit. An
// Unpark lets one Park through, and one that comes first counts.
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
// which may have capabilities of its own: see Timers, Clock, Rand, Blocker and Holder.
type Task interface {
	Park()
	Unpark()
}

// Bind runs f with t bound to the calling goroutine: while f runs, a Suspend on this goroutine parks t. Other goroutines that f starts are
// not bound. Bind nests, and restores the earlier binding however f ends. Under Bind(nil, f) a Suspend panics; schedulers wrap it around
// hooks and callbacks that run on their own goroutine. A Task is a pointer, or otherwise comparable.
//
// Binding the bound Task again marks the beginning and the end of a task. Schedulers that use one goroutine and one Task for many tasks, one
// after another, do so around each. The registration with the last context is withdrawn at the end of f, and nothing is allocated.
func Bind(t Task, f func()) {
	if t == nil {
		rebind(&forbidden, f)
		return
	}
	b := current()
	if b == nil || b.task != t {
		rebind(newBinding(t), f)
		return
	}
	if !b.blocked { // or else a wait has just begun, and needs it
		defer b.forget()
	}
	f()
}

// Current returns the Task bound to the calling goroutine, nil if there is none, also under Bind(nil, f).
func Current() Task {
	if b := current(); b != nil {
		return b.task
	}
	return nil
}

// Forbidden reports whether suspending is a mistake where it is called, and panics: under Bind(nil, f), as in callbacks and
// hooks, and in the block of a Suspend.
func Forbidden() bool {
	b := current()
	return b != nil && (b.task == nil || b.blocked)
}

// Self returns the Task bound to the calling goroutine, or a new Thread if there is none; under Bind(nil, f)
// it panics. A scheduler that runs on its caller parks its caller with it, and so nests inside a task of
// another: it parks in a loop, since whatever else wakes that task wakes it too.
func Self() Task {
	b := current()
	if b == nil {
		return Thread()
	}
	b.check()
	return b.task
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

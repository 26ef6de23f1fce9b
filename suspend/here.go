package suspend

// Here returns the scheduler of the calling task, and Goroutines where there is none or none that says so.
func Here() Spawner {
	if b := current(); b != nil {
		if s := spawnerOf(b.task); s != nil {
			return s
		}
	}
	return Goroutines
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

// Within reports whether the calling task is on s: whether Here returns s, something that wraps it, or a part of it. A
// goroutine without a task is on Goroutines.
func Within(s Spawner) bool {
	for here := Here(); here != nil; {
		if here == s {
			return true
		}
		if part, ok := here.(Same); ok && part.Same(s) {
			return true
		}
		w, wraps := here.(interface{ Unwrap() Spawner })
		if !wraps {
			break
		}
		here = w.Unwrap()
	}
	return false
}

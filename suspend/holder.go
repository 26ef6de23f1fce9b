package suspend

// Holder keeps a scheduler open for something that waits without a task: a Then, an actor without a message, a delayed
// retry. Until release is called it counts as a suspended task: Run and Close wait for it. Hold refuses with ErrClosed.
// Both obey the contract of Unpark. release is called once. Without it, a scheduler may close while something waits.
type Holder interface {
	Hold() (release func(), err error)
}

// Same is for the parts of a scheduler that are Spawners of their own, and what Here returns in their tasks. It reports
// whether s is the scheduler. Without it, a Spawner is the same as itself only.
type Same interface{ Same(s Spawner) bool }

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

// holdOn holds on for a Then, if on can be held.
func holdOn(on Executor) (release func()) {
	if h, ok := asOf[Holder](on); ok {
		if release, err := h.Hold(); err == nil {
			return release
		}
	}
	return nil
}

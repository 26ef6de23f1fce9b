package suspend

import "github.com/braidgo/braid/internal/preempt"

// Preemptible is where a scheduler for tests may let other tasks run, although the caller need not wait: see Preempt in packages random and
// simulation, and suspendtest.Explore. A primitive with a fast path calls it at the beginning of each operation that may suspend. Suspend,
// Wait and Select do so themselves. With other schedulers it costs one load.
func Preemptible() {
	if preempt.On() {
		preemptible()
	}
}

// Point is Preemptible for an operation that never suspends. Its caller may hold a native lock, so only suspendtest.Explore lets other tasks
// run there. Guard.Lock begins with a Point.
func Point() {
	if preempt.On() {
		point()
	}
}

// A preempter is a Task whose scheduler may do so. It yields if Preempt returns true.
type preempter interface{ Preempt() (yield bool) }

// A pointer is a Task whose scheduler also switches at each Point.
type pointer interface{ PreemptPoint() }

func preemptible() {
	if t, ok := innermost().(preempter); ok && t.Preempt() {
		Yield()
	}
}

func point() {
	if t, ok := innermost().(pointer); ok {
		t.PreemptPoint()
	}
}

// innermost returns the calling task without its decorations, nil if it must not suspend.
func innermost() Task {
	b := current()
	if b == nil || b.blocked {
		return nil
	}
	t := b.task
	for {
		w, ok := t.(interface{ Unwrap() Task })
		if !ok {
			return t
		}
		t = w.Unwrap()
	}
}

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

// A preempter is a Task whose scheduler may do so. It yields if Preempt returns true.
type preempter interface{ Preempt() (yield bool) }

// A guardPreempter is a Task whose scheduler switches at each lock of a Guard as well. The holder of a native lock may come there, so most
// schedulers do not.
type guardPreempter interface{ PreemptGuard() }

func preemptible() {
	if b := current(); b != nil && b.task != nil && !b.blocked {
		if t, ok := b.task.(preempter); ok && t.Preempt() {
			Yield()
		}
	}
}

// preemptibleGuard is preemptible for an operation that may not suspend.
func preemptibleGuard() {
	if b := current(); b != nil && b.task != nil && !b.blocked {
		if t, ok := b.task.(guardPreempter); ok {
			t.PreemptGuard()
		}
	}
}

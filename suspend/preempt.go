package suspend

import (
	"context"

	"github.com/braidgo/braid/internal/cancelctx"
	"github.com/braidgo/braid/internal/lazily"
	"github.com/braidgo/braid/internal/preempt"
)

// Preemptible lets a scheduler for tests run other tasks at a place where the caller need not wait. See the option Preempt of
// packages random and simulation, and suspendtest.Explore. A primitive with a fast path calls Preemptible at the beginning of each
// operation that may suspend. Suspend, Wait and Select call it themselves. With all other schedulers Preemptible costs one load.
func Preemptible() {
	if preempt.On() {
		preemptible()
	}
}

// Point is like Preemptible, but for an operation that never suspends. The caller of Point may hold a native lock, so only
// suspendtest.Explore switches tasks there. Guard.Lock begins with a Point.
func Point() {
	if preempt.On() {
		point()
	}
}

// looked is a Point between the look at a context of package cancel, which has not ended, and the operation: the context may end in
// between, and the operation may succeed anyway. The result is false, which says that ctx had not ended.
//
//go:noinline
func looked(ctx context.Context) (ended bool) {
	if cancelctx.Of(lazily.Plain(ctx)) != nil {
		point()
	}
	return false
}

// A preempter is a Task whose scheduler may run other tasks in Preemptible. The task yields if Preempt returns true.
type preempter interface{ Preempt() (yield bool) }

// A pointer, named after Point, is a Task whose scheduler may also run other tasks at each Point.
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

// innermost returns the calling task without its decorators. It returns nil if there is no task, or if it must not suspend.
func innermost() Task {
	b := current()
	if b == nil || b.doing == inBlock {
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

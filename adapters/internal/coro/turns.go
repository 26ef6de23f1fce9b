package coro

import (
	"time"

	"github.com/braidgo/braid/internal/preempt"
)

// A turns asks a step that lasts to give way. A task whose operations never have to wait would hold its worker for ever: a budget for each
// operation would have to find the task, which takes longer than many operations. So the next but one look at a step makes it late, and sets the
// word of package preempt, which each operation that may suspend loads anyway. While it is set such an operation asks its task, and a task that is
// late yields.
//
// The word makes the operations of the whole process slower. So it is set up to the next look, and then only when the step has lasted for
// twice as long. A step that computes for an hour sets it for a fifth of a second altogether.
type turns struct {
	on       bool
	due      time.Duration // of the step, when the word is set again
	withdrew func()        // not nil: the word is set, up to this call
}

// turnLook is the time between two looks at most. A task that is always ready gives way after twice as long at the latest.
const turnLook = 10 * time.Millisecond

// Turns makes s ask steps that last to give way. It returns s, or where s is nil a Stalls that reports nothing. In a bubble a nil s stays nil.
// It is called before the first Begin.
func (s *Stalls) Turns() *Stalls {
	if s = s.orSilent(); s != nil {
		s.turns.on = true
	}
	return s
}

// Preempt reports whether the step of the calling task is to give way. It is what suspend.Preemptible asks.
func (c *Coroutine) Preempt() (yield bool) {
	s := c.watch.Load()
	return s != nil && s.state.Load() == late
}

// urge is called by each look.
func (s *Stalls) urge(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.turns
	t.withdraw()
	if !t.on || s.stopped || s.state.Load() < asked {
		return
	}
	held := now.Sub(s.since)
	if held == 0 || held < t.due { // asked just now, or not long ago
		return
	}
	if s.state.CompareAndSwap(asked, late) || s.state.Load() == late {
		t.due = 2 * held
		t.withdrew = preempt.Begin()
	}
}

// withdraw resets the word.
func (t *turns) withdraw() {
	if t.withdrew != nil {
		t.withdrew()
		t.withdrew = nil
	}
}

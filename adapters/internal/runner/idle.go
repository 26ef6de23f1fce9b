package runner

import "github.com/braidgo/braid/internal/atomicx"

// idleHooks are the functions that a Driven calls before it sleeps.
type idleHooks struct {
	always func() // may be nil
	called int    // the number of the last step before the last call of always

	waiting atomicx.Int32 // len(once)
	mu      atomicx.Mutex
	once    []func()
}

// take returns the next hook, nil if there is none. It is called on the Runner; step is the number of its last step.
func (h *idleHooks) take(step int) (f func()) {
	if h.waiting.Load() > 0 { // a goroutine that adds one wakes the scheduler afterwards
		h.mu.Lock()
		defer h.mu.Unlock()
		h.waiting.Add(-1)
		f, h.once[0] = h.once[0], nil
		h.once = h.once[1:]
		return f
	}
	if h.always != nil && step != h.called {
		h.called = step
		return h.always
	}
	return nil
}

// OnIdle adds a hook that is called once.
func (d *Driven) OnIdle(f func()) {
	h := &d.hooks
	h.mu.Lock()
	h.once = append(h.once, f)
	h.waiting.Add(1)
	h.mu.Unlock()
	_ = d.Execute(func() {}) // the scheduler may be asleep
}

package runner

import "github.com/braidgo/braid/internal/atomicx"

// idleHooks holds the functions that a Driven calls before it sleeps.
type idleHooks struct {
	always func() // may be nil
	called int    // the number of the last step before the last call of always()

	waiting atomicx.Int32 // equals len(once); read without the lock
	mu      atomicx.Mutex
	once    []func()
}

// nextHook returns the next hook, or nil if there is none. The caller must be on the Runner, and passes the number of
// its last step.
func (h *idleHooks) nextHook(step int) (f func()) {
	if h.waiting.Load() > 0 { // OnIdle wakes the scheduler after it has added a hook
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

// OnIdle adds a hook that is called once, before a sleep.
func (d *Driven) OnIdle(f func()) {
	h := &d.hooks
	h.mu.Lock()
	h.once = append(h.once, f)
	h.waiting.Add(1)
	h.mu.Unlock()
	_ = d.Execute(func() {}) // the scheduler may be asleep
}

package mutex

import "context"

// Spin exports Mutex.spin.
func (m *Mutex) Spin() bool { return m.spin() }

// LockSlow exports Mutex.lockSlow.
func (m *Mutex) LockSlow(ctx context.Context) error { return m.lockSlow(ctx) }

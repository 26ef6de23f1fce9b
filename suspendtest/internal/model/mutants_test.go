package model_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest/internal/model"
)

// A mistake that only the order of results shows is found on a scheduler whose order is known. A loss that needs a cancellation
// between a Resume and the return of its waiter is found on a scheduler where all orders have the same chance.
type (
	lastComeMutex struct {
		model.Mutex
		guard   suspend.Guard
		held    bool
		waiters []suspend.Resumer[struct{}]
	}
	losesReceived struct{ model.Chan }
	passesReaders struct{ model.RWMutex }
	signalsLast   struct {
		model.Cond
		guard   suspend.Guard
		waiters []suspend.Resumer[struct{}]
	}
)

func (m *lastComeMutex) tryLocked() bool {
	was := m.held
	m.held = true
	return !was
}

func (m *lastComeMutex) TryLock() bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.tryLocked()
}

func (m *lastComeMutex) LockContext(ctx context.Context) error {
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (none struct{}, ok bool) {
		m.guard.Lock()
		defer m.guard.Unlock()
		if m.tryLocked() {
			return none, true
		}
		m.waiters = append(m.waiters, r)
		return none, false
	})
	return err
}

func (m *lastComeMutex) Guard() *suspend.Guard                    { return &m.guard }
func (m *lastComeMutex) Try() (none struct{}, ok bool, err error) { return none, m.tryLocked(), nil }
func (m *lastComeMutex) Enqueue(r suspend.Resumer[struct{}])      { m.waiters = append(m.waiters, r) }
func (m *lastComeMutex) Remove(r suspend.Resumer[struct{}])       {}
func (m *lastComeMutex) LockOp() suspend.Op[struct{}] {
	return suspend.OpOf(suspend.Source[struct{}](m))
}

func (m *lastComeMutex) Unlock() {
	m.guard.Lock()
	defer m.guard.Unlock()
	if !m.held {
		panic("mutex: Unlock of an unlocked Mutex")
	}
	for len(m.waiters) > 0 {
		r := m.waiters[len(m.waiters)-1]
		m.waiters = m.waiters[:len(m.waiters)-1]
		if r.Resume(struct{}{}, nil) {
			return
		}
	}
	m.held = false
}

func (c losesReceived) Recv(ctx context.Context) (int, error) {
	v, err := c.Chan.Recv(ctx)
	if err == nil && ctx.Err() != nil {
		return 0, ctx.Err() // v is lost
	}
	return v, err
}

// RLockContext overtakes a waiting writer while readers hold the lock.
func (m passesReaders) RLockContext(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.TryRLock() {
		m.RUnlock()
	}
	if err := m.RWMutex.RLockContext(ctx); err != nil {
		return err
	}
	suspend.Yield()
	m.RUnlock()
	return m.RWMutex.RLockContext(ctx)
}

func (c *signalsLast) Wait(ctx context.Context) error {
	_, err := suspend.Suspend(ctx, func(r suspend.Resumer[struct{}]) (none struct{}, ok bool) {
		c.guard.Lock()
		defer c.guard.Unlock()
		c.waiters = append(c.waiters, r)
		return none, false
	})
	return err
}

func (c *signalsLast) Signal() {
	c.guard.Lock()
	defer c.guard.Unlock()
	for len(c.waiters) > 0 {
		r := c.waiters[len(c.waiters)-1]
		c.waiters = c.waiters[:len(c.waiters)-1]
		if r.Resume(struct{}{}, nil) {
			return
		}
	}
}

func (c *signalsLast) Broadcast() {
	c.guard.Lock()
	defer c.guard.Unlock()
	for _, r := range slices.Backward(c.waiters) {
		r.Resume(struct{}{}, nil)
	}
	c.waiters = nil
}

func TestAdversaryKillsMutants(t *testing.T) {
	for _, m := range []struct {
		name string
		spec model.Spec
	}{
		{"the last to come is the first to lock", model.Mutexes(func() model.Mutex { return &lastComeMutex{} })},
		{"a value is lost if Recv is cancelled too late", model.Chans(func(n int) model.Chan { return losesReceived{model.RealChan(n)} })},
		{"a reader gives its place away", model.RWMutexes(func() model.RWMutex { return passesReaders{model.RealRWMutex()} })},
		{"Signal wakes the last", model.Conds(func() (model.Cond, func(), func()) { return &signalsLast{}, func() {}, func() {} })},
	} {
		t.Run(m.name, func(t *testing.T) {
			for seed := range uint64(3000) {
				p := m.spec.Random(rand.New(rand.NewPCG(seed, 1)))
				if err := onRandom(p, seed+1, nil); err != nil {
					short := p.Shrink(func(p *model.Program) bool { return onRandom(p, seed+1, nil) != nil })
					t.Logf("program %d: %v\n%v", seed, onRandom(short, seed+1, nil), short)
					return
				}
			}
			t.Errorf("%s: survived", m.name)
		})
	}
}

package suspendtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/latch"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
	"github.com/braidgo/braid/watch"
)

// In each program, task a begins an operation, and task b first ends a's context and then makes the operation possible. Task a
// may look at the context before that, and then succeed, as on real threads. So Explore must not report that a fails in all runs.
func TestExploreEndsAContextBetweenTheLookAndTheOperation(t *testing.T) {
	one := func(op suspend.Op[struct{}]) func(ctx context.Context) error {
		return func(ctx context.Context) error { _, err := suspend.Select(ctx, suspend.CaseOf(op)); return err }
	}
	for name, open := range map[string]func() (a func(ctx context.Context) error, b func()){
		"Mutex": func() (func(ctx context.Context) error, func()) {
			m := new(mutex.Mutex)
			m.TryLock()
			return m.LockContext, m.Unlock
		},
		"RWMutex": func() (func(ctx context.Context) error, func()) {
			m := new(mutex.RWMutex)
			m.TryLock()
			return m.RLockContext, m.Unlock
		},
		"Semaphore": func() (func(ctx context.Context) error, func()) {
			s := semaphore.New(1)
			s.TryAcquire(1)
			return func(ctx context.Context) error { return s.Acquire(ctx, 1) }, func() { s.Release(1) }
		},
		"Select": func() (func(ctx context.Context) error, func()) {
			s := semaphore.New(1)
			s.TryAcquire(1)
			return one(s.AcquireOp(1)), func() { s.Release(1) }
		},
		"Chan": func() (func(ctx context.Context) error, func()) {
			c := chanx.New[int](1)
			return func(ctx context.Context) error { _, err := c.Recv(ctx); return err }, func() { _, _ = c.TrySend(1) }
		},
		"MVar": func() (func(ctx context.Context) error, func()) {
			m := mvar.New[int]()
			return func(ctx context.Context) error { _, err := m.Take(ctx); return err }, func() { m.TryPut(1) }
		},
		"Promise": func() (func(ctx context.Context) error, func()) {
			p := promise.New[int]()
			return func(ctx context.Context) error { _, err := p.Await(ctx); return err }, func() { _ = p.Fill(1) }
		},
		"Latch": func() (func(ctx context.Context) error, func()) {
			l := latch.New(1)
			return l.Wait, l.CountDown
		},
		"watch": func() (func(ctx context.Context) error, func()) {
			v := watch.New(1)
			seen := v.Load()
			return func(ctx context.Context) error { _, err := v.Changed(ctx, seen.Version); return err }, func() { _ = v.Store(2) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			text := explored(t, func(w *suspendtest.World) {
				a, b := open()
				ctx, stop := cancel.New(context.Background())
				var err error
				w.Go("a", func(context.Context) { err = a(ctx) })
				w.Go("b", func(context.Context) { stop(nil); b() })
				w.Check(func() error {
					if err == nil {
						return errors.New("succeeded")
					}
					return nil
				})
			}, suspendtest.ExploreOptions{})
			require.Contains(t, text, "succeeded")
		})
	}
}

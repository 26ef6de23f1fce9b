package idle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/simulation"
	"github.com/braidgo/braid/idle"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspendtest"
)

// inNodes calls f in a World, with a Group on a node, a Group of a Group, and the node itself.
func inNodes(t *testing.T, f func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error) {
	for depth := range 3 {
		t.Run(fmt.Sprint(depth, " groups"), func(t *testing.T) {
			require.NoError(t, simulation.Run(simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
				return f(ctx, w, func(n *simulation.Node) suspend.Spawner {
					var on suspend.Spawner = n
					for range depth {
						on = idle.New(on, nil)
					}
					return on
				})
			}).Err)
		})
	}
}

// A Kill of a task of a Group competes with the Resume of its wait, as it does without a Group. The wait exited although the lock had been
// handed over, and the lock was lost.
func TestKillAndResume(t *testing.T) {
	inNodes(t, func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error {
		nodes := 0
		suspendtest.Kill(t, func() (suspend.Spawner, func()) {
			nodes++
			n := w.Node(fmt.Sprint(nodes))
			return decorate(n), n.Crash
		})
		return nil
	})
}

// A Run in a task of a Group ends with this task, and its own tasks keep what was handed to them.
func TestKillOfARunInAGroup(t *testing.T) {
	inNodes(t, func(ctx context.Context, w *simulation.World, decorate func(n *simulation.Node) suspend.Spawner) error {
		for _, cancelled := range []bool{false, true} { // whether an earlier wait of the task was cancelled
			n := w.Node(fmt.Sprint("a", cancelled))
			var l mutex.RWMutex
			_ = l.LockContext(ctx)
			ended := false
			_ = decorate(n).Go(func() {
				defer func() { ended = true }()
				if cancelled {
					ctx, stop := context.WithCancel(bg)
					_ = suspend.Here().Go(stop)
					_, _ = suspend.Do(ctx, suspend.Op[int]{})
				}
				_ = fifo.Run(bg, func(ctx context.Context) error {
					l.Lock()
					defer l.Unlock()
					return suspend.Sleep(bg, time.Hour)
				})
			})
			_ = suspend.Sleep(ctx, time.Second)
			l.Unlock()
			n.Crash()
			_ = suspend.Sleep(ctx, time.Second)
			if !ended || !l.TryLock() {
				return errors.New("the task of the Run has not ended, or the lock is lost")
			}
		}
		return nil
	})
}

// A Kill that meets a resumed wait takes effect in the next wait, also if a Bind begins or ends between the two.
func TestKillAroundABind(t *testing.T) {
	for name, task := range map[string]func(take func(), behind *bool){
		"a Bind begins": func(take func(), behind *bool) {
			take()
			suspend.Bind(&decorator{suspend.Self()}, func() { _ = suspend.Sleep(bg, time.Second); *behind = true })
		},
		"a Bind ends": func(take func(), behind *bool) {
			suspend.Bind(&decorator{suspend.Self()}, take)
			_ = suspend.Sleep(bg, time.Second)
			*behind = true
		},
		"a Bind in a Shield": func(take func(), behind *bool) {
			suspend.Shield(func() {
				suspend.Bind(&decorator{suspend.Self()}, func() { take(); _ = suspend.Sleep(bg, 0) })
			})
			*behind = true
		},
	} {
		t.Run(name, func(t *testing.T) {
			var taken, behind bool
			require.NoError(t, simulation.Run(simulation.Options{Seed: 1}, func(ctx context.Context, w *simulation.World) error {
				n := w.Node("a")
				var m mvar.MVar[int]
				_ = n.Go(func() { task(func() { _, err := m.Take(bg); taken = err == nil }, &behind) })
				_ = suspend.Sleep(ctx, time.Second)
				m.TryPut(1)
				n.Crash()
				return suspend.Sleep(ctx, 10*time.Second)
			}).Err)
			require.True(t, taken)
			require.False(t, behind, "a task that was killed goes on")
		})
	}
}

type decorator struct{ suspend.Task }

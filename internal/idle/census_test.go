package idle_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// A task of a Group waits for a lock that the caller holds. If the caller calls Wait, this is a deadlock, even beside a task that
// runs. WaitIdle is no deadlock: the Group is idle as soon as the other task waits.
func TestTheCensusSeesTheTasks(t *testing.T) {
	for name, wait := range map[string]func(g *idle.Group, ctx context.Context) error{"Wait": (*idle.Group).Wait, "WaitIdle": (*idle.Group).WaitIdle} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			defer census.Start(census.Options{StuckAfter: -1})()
			g := idle.New(suspend.Goroutines, nil)
			ctx, end := context.WithCancel(bg)
			var m mutex.Mutex
			runs, done := make(chan struct{}), make(chan error)
			_ = g.Go(func() { <-runs })
			go func() {
				m.Lock()
				defer m.Unlock()
				_ = g.Go(func() {
					if m.LockContext(ctx) == nil {
						m.Unlock()
					}
				})
				done <- wait(g, bg)
			}()
			var s census.Snapshot
			schedtest.Eventually(t, "both wait", func() bool {
				s = census.Take()
				waiting := 0
				for _, t := range s.Tasks {
					if t.Waits != nil {
						waiting++
					}
				}
				return waiting == 2
			})
			if name == "Wait" {
				require.Len(t, s.Deadlocks, 1)
				require.Len(t, s.Deadlocks[0].Circle, 2)
				end()
				close(runs)
			} else {
				require.Empty(t, s.Deadlocks)
				close(runs)
			}
			require.NoError(t, <-done)
			end()
			require.NoError(t, g.Wait(bg))
			schedtest.Eventually(t, "the caller has unlocked", func() bool { return len(census.Take().Tasks) == 0 })
		})
	}
}

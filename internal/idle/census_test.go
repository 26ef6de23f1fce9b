package idle_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

// A task of a Group waits for a lock that the caller holds. If the caller calls Wait, this is a deadlock, even while another task
// runs. WaitIdle is not a deadlock: the Group is idle as soon as the other task waits.
func TestTheCensusSeesTheTasks(t *testing.T) {
	for name, wait := range map[string]func(g *idle.Group, ctx context.Context) error{"Wait": (*idle.Group).Wait, "WaitIdle": (*idle.Group).WaitIdle} {
		t.Run(name, func(t *testing.T) {
			defer schedtest.Within(t, schedtest.Deadline)()
			g := idle.New(suspend.Goroutines, nil)
			begun, early := make(chan struct{}), make(chan struct{})
			_ = g.Go(func() { close(begun); <-early }) // is unknown to the census
			<-begun
			defer census.Start(census.Options{StuckAfter: -1})()
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
				holders := func() int {
					s = census.Take()
					require.Len(t, s.Deadlocks, 1)
					require.Len(t, s.Deadlocks[0].Cycle, 2)
					for _, link := range s.Deadlocks[0].Cycle {
						if strings.Contains(link.Waits.Operation, "Wait") {
							return len(link.Waits.For[0].Holders)
						}
					}
					return 0
				}
				require.Equal(t, 2, holders())
				close(early)
				schedtest.Eventually(t, "the early task has ended", func() bool { return g.Live() == 2 })
				require.Equal(t, 2, holders(), "the end of the early task has removed another")
				close(runs)
				schedtest.Eventually(t, "one task has ended", func() bool { return g.Live() == 1 })
				require.Equal(t, 1, holders())
				end()
			} else {
				require.Empty(t, s.Deadlocks)
				close(early)
				close(runs)
			}
			require.NoError(t, <-done)
			end()
			require.NoError(t, g.Wait(bg))
			schedtest.Eventually(t, "the caller has unlocked", func() bool { return len(census.Take().Tasks) == 0 })
		})
	}
}

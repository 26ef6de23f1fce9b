package idle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/adapters/limited"
	"github.com/braidgo/braid/adapters/random"
	"github.com/braidgo/braid/fetch"
	"github.com/braidgo/braid/internal/idle"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/suspend"
)

// A run is the Run of a scheduler that uses its caller's goroutine.
type run func(ctx context.Context, main func(context.Context) error) error

var runs = map[string]run{
	"fifo": fifo.Run,
	"random": func(ctx context.Context, main func(ctx context.Context) error) error {
		return random.New(random.Options{}).Run(ctx, main)
	},
	"fetch": func(ctx context.Context, main func(ctx context.Context) error) error {
		return fetch.Run(ctx, main, fetch.Options{})
	},
}

// inGroup runs body as a task of a Group, in each kind of Run, on each scheduler.
func inGroup(t *testing.T, onIdle func(), body func(t *testing.T, g *idle.Group, run run)) {
	all := append([]schedtest.Scheduler{{Name: "limited", Open: func() (suspend.Spawner, func()) {
		s := limited.New(1, limited.Options{})
		return s, func() { s.Close() }
	}}}, schedtest.All...)
	for _, on := range all {
		for name, run := range runs {
			t.Run(on.Name+"/"+name, func(t *testing.T) {
				defer schedtest.Within(t, schedtest.Deadline)()
				s, closeAll := on.Open()
				defer closeAll()
				g := idle.New(s, onIdle)
				require.NoError(t, g.Go(func() { body(t, g, run) }))
				require.NoError(t, g.Wait(bg))
			})
		}
	}
}

// When the Run sleeps, the group becomes idle. onIdle then resumes a task of the same Run.
func TestARunWaitsForItsGroup(t *testing.T) {
	inGroup(t, nil, func(t *testing.T, g *idle.Group, run run) {
		require.NoError(t, run(bg, func(ctx context.Context) error { return g.WaitIdle(ctx) }))
	})
}

// onIdle resumes a task of the sleeping Run. It is called on the goroutine of the Run.
func TestOnIdleResumesARun(t *testing.T) {
	var m mvar.MVar[int]
	inGroup(t, func() { m.TryPut(1) }, func(t *testing.T, g *idle.Group, run run) {
		require.NoError(t, run(bg, func(ctx context.Context) error {
			for range 10 {
				if _, err := m.Take(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	})
}

// onIdle starts a task on the sleeping Run.
func TestOnIdleStartsInARun(t *testing.T) {
	var here atomic.Pointer[suspend.Spawner]
	var m mvar.MVar[int]
	inGroup(t, func() {
		if s := here.Swap(nil); s != nil {
			_ = (*s).Go(func() { m.TryPut(1) })
		}
	}, func(t *testing.T, g *idle.Group, run run) {
		require.NoError(t, run(bg, func(ctx context.Context) error {
			s := suspend.Here()
			here.Store(&s)
			_, err := m.Take(ctx)
			return err
		}))
	})
}

// A Run inside a Run, in a task of a Group, continues to wake up for its timers after the group was idle.
func TestTimersInARunInARun(t *testing.T) {
	inGroup(t, nil, func(t *testing.T, g *idle.Group, run run) {
		require.NoError(t, run(bg, func(ctx context.Context) error {
			return run(ctx, func(ctx context.Context) error {
				for range 20 {
					if err := g.WaitIdle(ctx); err != nil {
						return err
					}
					if err := suspend.Sleep(ctx, 20*time.Microsecond); err != nil {
						return err
					}
				}
				return nil
			})
		}))
	})
}

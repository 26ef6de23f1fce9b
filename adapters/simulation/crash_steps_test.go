package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/adapters/simulation"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// An estate is what tasks of a node and of the World share. Each that gets something from it gives it back.
type estate struct {
	mu   mutex.Mutex
	sem  *semaphore.Semaphore
	coin *mvar.MVar[int]
}

// whole checks that nothing was lost.
func (e *estate) whole(t *testing.T, k int) {
	t.Helper()
	require.True(t, e.mu.TryLock(), "step %d: the mutex is locked", k)
	require.True(t, e.sem.TryAcquire(2), "step %d: a permit is missing", k)
	_, ok := e.coin.TryTake()
	require.True(t, ok, "step %d: the coin is lost", k)
}

// use waits for one of the three, beside other cases, and gives it back, at once or later.
func (e *estate) use(ctx context.Context, atOnce bool, among ...suspend.Selectable) {
	lock, permit, coin := suspend.On(e.mu.LockOp()), suspend.On(e.sem.AcquireOp(1)), suspend.On(e.coin.TakeOp())
	switch won, _ := suspend.Select(ctx, append(among, lock, permit, coin)...); won {
	case lock:
		defer e.mu.Unlock()
	case permit:
		defer e.sem.Release(1)
	case coin:
		defer func() { _ = e.coin.TryPut(coin.Value()) }()
	}
	if !atOnce {
		suspend.Yield()
	}
}

// crashAtEachStep runs a program again and again, and crashes its node n at the k'th step, until the program takes fewer steps.
func crashAtEachStep(t *testing.T, program func(ctx context.Context, w *simulation.World, n *simulation.Node, k int)) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for seed := range uint64(12) {
		for k, steps := 1, 1; k <= steps; k++ {
			r := simulation.Run(simulation.Options{Seed: seed + 1, StallAfter: -1}, func(ctx context.Context, w *simulation.World) error {
				n, at := w.Node("n"), 0
				w.Always(func() error {
					if at++; at == k {
						n.Crash()
					}
					return nil
				})
				program(ctx, w, n, k)
				return nil
			})
			require.NoError(t, r.Err)
			steps = r.Steps
		}
	}
}

func cases(all ...suspend.Selectable) []suspend.Selectable { return all }

// A task that was handed a lock, a permit or a value has it, and its deferred functions give it back, also if its node crashes in the same
// step. To stop the timer of a losing case ended the task before.
func TestACrashAtEachStepLosesNothing(t *testing.T) {
	for name, losers := range map[string]func(ctx context.Context, at time.Time) []suspend.Selectable{
		"no timer": func(context.Context, time.Time) []suspend.Selectable { return nil },
		"After": func(context.Context, time.Time) []suspend.Selectable {
			return cases(suspend.On(suspend.After(time.Hour)))
		},
		"Until": func(_ context.Context, at time.Time) []suspend.Selectable {
			return cases(suspend.On(suspend.Until(at)))
		},
		"a context": func(ctx context.Context, _ time.Time) []suspend.Selectable {
			return cases(suspend.On(suspend.Done(ctx)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			crashAtEachStep(t, func(ctx context.Context, w *simulation.World, n *simulation.Node, k int) {
				e := &estate{sem: semaphore.New(2), coin: mvar.NewFull(1)}
				stock, end := context.WithCancel(ctx)
				defer end()
				at := suspend.Now().Add(time.Hour)
				for _, on := range []suspend.Spawner{n, n, n, n, n, n, w} {
					_ = on.Go(func() {
						for i := range 4 {
							e.use(ctx, i%2 > 0, losers(stock, at)...)
						}
					})
				}
				_ = suspend.Sleep(ctx, time.Minute)
				e.whole(t, k)
			})
		})
	}
}

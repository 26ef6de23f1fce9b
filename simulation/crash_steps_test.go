package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/braidgo/braid/cond"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/mvar"
	"github.com/braidgo/braid/semaphore"
	"github.com/braidgo/braid/simulation"
	"github.com/braidgo/braid/suspend"
	"github.com/stretchr/testify/require"
)

// An estate holds what tasks of a node and of the World share. Each task returns what it gets.
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

// use waits for one of the three, among other cases, and returns it, at once or later.
func (e *estate) use(ctx context.Context, atOnce bool, among ...suspend.Selectable) {
	lock, permit, coin := suspend.CaseOf(e.mu.LockOp()), suspend.CaseOf(e.sem.AcquireOp(1)), suspend.CaseOf(e.coin.TakeOp())
	won, _ := suspend.Select(ctx, append(among, lock, permit, coin)...)
	_ = suspend.Now()
	switch won {
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

// crashAtEachStep repeats a program, and crashes its node n at the k'th step, for each k until the program has fewer steps.
func crashAtEachStep(t *testing.T, program func(ctx context.Context, w *simulation.World, n *simulation.Node, k int)) {
	defer schedtest.Within(t, schedtest.Deadline)()
	for seed := range uint64(12) {
		for k, steps := 1, 1; k <= steps; k++ {
			r := simulation.Run(func(ctx context.Context, w *simulation.World) error {
				n, at := w.Node("n"), 0
				w.Always(func() error {
					if at++; at == k {
						n.Crash()
					}
					return nil
				})
				program(ctx, w, n, k)
				return nil
			}, simulation.Options{Seed: seed + 1, StallAfter: -1})
			require.NoError(t, r.Err)
			steps = r.Steps
		}
	}
}

func cases(all ...suspend.Selectable) []suspend.Selectable { return all }

// A task has received a lock, a permit or a value, and its node crashes in the same step. Its deferred functions must return what
// it has. Neither stopping the timer of a losing case nor a look at the clock may end the task before it has registered the
// deferred functions.
func TestACrashAtEachStepLosesNothing(t *testing.T) {
	for name, losers := range map[string]func(ctx context.Context, at time.Time) []suspend.Selectable{
		"no timer": func(context.Context, time.Time) []suspend.Selectable { return nil },
		"After": func(context.Context, time.Time) []suspend.Selectable {
			return cases(suspend.CaseOf(suspend.After(time.Hour)))
		},
		"After, for a moment": func(_ context.Context, at time.Time) []suspend.Selectable {
			return cases(suspend.CaseOf(suspend.After(at.Sub(suspend.Now()))))
		},
		"a context": func(ctx context.Context, _ time.Time) []suspend.Selectable {
			return cases(suspend.CaseOf(suspend.Done(ctx)))
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

// A waiter of a Cond holds L when its deferred functions run, even if its node crashes while it waits for L again. The World
// holds L meanwhile. The waiter must not unlock what the World has locked, which would make another task panic.
func TestCondOfACrashedNode(t *testing.T) {
	for _, restart := range []bool{false, true} {
		run(t, func(ctx context.Context, w *simulation.World) error {
			var mu mutex.Mutex
			c, n, inside, ended := cond.New(&mu), w.Node("n"), 0, 0
			visit := func(f func()) {
				_ = mu.LockContext(ctx)
				defer mu.Unlock()
				inside++
				require.Equal(t, 1, inside)
				defer func() { inside-- }()
				f()
			}
			for range 3 {
				_ = n.Go(func() {
					defer func() { ended++ }()
					visit(func() {
						inside--
						defer func() { inside++ }()
						_ = c.Wait(ctx)
					})
				})
			}
			_ = suspend.Sleep(ctx, time.Second)
			visit(func() {
				n.Crash()
				require.Zero(t, ended, "it did not wait for L")
				_ = suspend.Sleep(ctx, time.Second)
				if restart {
					n.Restart(func(context.Context) { visit(suspend.Yield) })
				}
				_ = suspend.Sleep(ctx, time.Second)
			})
			_ = suspend.Sleep(ctx, time.Second)
			require.Equal(t, 3, ended)
			require.True(t, mu.TryLock())
			return nil
		})
	}
}

// A run ends although L is never unlocked, and leaves no goroutine behind.
func TestARunEndsThoughACondHasNoLock(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	before := schedtest.Goroutines()
	for range 20 {
		unwound := false
		run(t, func(ctx context.Context, w *simulation.World) error {
			var mu mutex.Mutex
			c := cond.New(&mu)
			_ = w.Node("n").Go(func() {
				defer func() { unwound = true }()
				_ = mu.LockContext(ctx)
				_ = c.Wait(ctx)
			})
			_ = suspend.Sleep(ctx, time.Second)
			_ = mu.LockContext(ctx) // is never unlocked
			w.Node("n").Crash()
			require.False(t, unwound)
			return nil
		})
		require.True(t, unwound)
	}
	schedtest.Eventually(t, "no goroutine is left", func() bool { return schedtest.Goroutines() <= before })
}

// spinning is a foreign lock whose Lock never parks.
type spinning struct{ locked bool }

func (l *spinning) Unlock() { l.locked = false }
func (l *spinning) Lock() {
	for l.locked {
		suspend.Yield()
	}
	l.locked = true
}

// A Crash returns even if the lock of a Cond is acquired by repeated Yields.
func TestACrashWithASpinningLock(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	run(t, func(ctx context.Context, w *simulation.World) error {
		l, ended := new(spinning), false
		c := cond.New(l)
		n := w.Node("n")
		_ = n.Go(func() {
			l.Lock()
			defer func() { ended = true; l.Unlock() }()
			_ = c.Wait(ctx)
		})
		_ = suspend.Sleep(ctx, time.Second)
		l.Lock()
		n.Crash()
		require.False(t, ended)
		l.Unlock()
		_ = suspend.Sleep(ctx, time.Second)
		require.True(t, ended)
		require.False(t, l.locked)
		return nil
	})
}

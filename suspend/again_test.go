package suspend_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/again"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
)

// A gauge is a number under a guard. An operation of it is ready as soon as the number has reached the operation's least value,
// and returns the number that Prepare saw.
type gauge struct {
	guard   suspend.Guard
	n       int
	holding int // Preparers that are neither performed nor dropped
	waiters suspend.Queue[int, struct{}]
}

func (g *gauge) add(n int) {
	g.guard.Lock()
	defer g.guard.Unlock()
	g.n += n
	g.waiters.ResumeAll(0, again.Err)
}

func (g *gauge) atLeast(n int, prepared func()) suspend.Op[int] {
	return suspend.OpOf[int](&atLeast{gauge: g, least: n, prepared: prepared})
}

type atLeast struct {
	*gauge
	least, seen int
	prepared    func()
	holds       bool // from Prepare until Perform or Drop
}

func (a *atLeast) Anew() suspend.Source[int] {
	return &atLeast{gauge: a.gauge, least: a.least, prepared: a.prepared}
}

func (a *atLeast) Prepare() {
	a.guard.Lock() // Prepare is called without a guard
	a.seen = a.n
	if !a.holds {
		a.holding, a.holds = a.holding+1, true
	}
	a.guard.Unlock()
	if a.prepared != nil {
		a.prepared()
	}
}

func (a *atLeast) Drop() {
	a.guard.Lock() // Drop is called without a guard
	defer a.guard.Unlock()
	if a.holds {
		a.holding, a.holds = a.holding-1, false
	}
}

func (a *atLeast) Settle() { a.Drop() }

func (a *atLeast) Guard() *suspend.Guard          { return &a.guard }
func (a *atLeast) Enqueue(r suspend.Resumer[int]) { a.waiters.Push(r, struct{}{}) }
func (a *atLeast) Remove(r suspend.Resumer[int])  { a.waiters.Remove(r) }

func (a *atLeast) Try() (int, bool, error) {
	if a.seen != a.n {
		return 0, true, again.Err
	}
	return a.seen, a.n >= a.least, nil
}

// A Preparer is prepared before each look at its case, whichever function performs the operation.
func TestPreparer(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for name, perform := range map[string]func(op suspend.Op[int]) (int, error){
			"Do": func(op suspend.Op[int]) (int, error) { return suspend.Do(bg, op) },
			"Choose": func(op suspend.Op[int]) (int, error) {
				return suspend.Do(bg, suspend.Choose(op, chanx.New[int](0).RecvOp()))
			},
			"Map": func(op suspend.Op[int]) (int, error) {
				return suspend.Do(bg, suspend.Map(op, func(v int, err error) (int, error) { return v, err }))
			},
			"Select": func(op suspend.Op[int]) (int, error) {
				c, never := suspend.CaseOf(op), suspend.CaseOf(suspend.After(time.Hour))
				won, err := suspend.Select(bg, never, c)
				require.NoError(t, err)
				require.Equal(t, suspend.Selectable(c), won)
				return c.Result()
			},
			"Then": func(op suspend.Op[int]) (v int, err error) {
				on, ok := suspend.As[suspend.Executor](s)
				require.True(t, ok)
				return suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
					suspend.Then(bg, op, on, func(v int, err error) { r.Resume(v, err) })
					return 0, false
				})
			},
		} {
			var g gauge
			var looks atomic.Int32
			op := g.atLeast(3, func() { looks.Add(1) })
			schedtest.Run(t, s, func() {
				v, err := perform(op)
				require.NoError(t, err, name)
				require.Equal(t, 3, v, name)
			}, func() {
				for i := range 3 {
					schedtest.Eventually(t, name, func() bool { return int(looks.Load()) > i && g.len() == 1 })
					g.add(1)
				}
			})
			require.EqualValues(t, 4, looks.Load(), name)
			g.requireIdle(t)
		}
	})
}

func (g *gauge) len() int {
	g.guard.Lock()
	defer g.guard.Unlock()
	return g.waiters.Len()
}

// requireIdle checks that the gauge has no waiter, and that each Preparer was performed or dropped.
func (g *gauge) requireIdle(t *testing.T) {
	require.Zero(t, g.len())
	g.guard.Lock()
	defer g.guard.Unlock()
	require.Zero(t, g.holding)
}

// A Select has a stale case and a ready one. It must not receive a value and then drop it.
func TestAStaleCaseBesideAReadyOne(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			for i := range 200 {
				var g gauge
				c := chanx.New[int](1)
				_, _ = c.TrySend(1)
				stale := 0
				tx := suspend.CaseOf(g.atLeast(100, func() {
					if stale++; stale <= 3 {
						g.add(1) // makes the number that Prepare saw stale
					}
				}))
				recv := suspend.CaseOf(c.RecvOp())
				how := []func(context.Context, ...suspend.Selectable) (suspend.Selectable, error){suspend.Select, suspend.SelectOrdered, suspend.TrySelect}[i%3]
				cases := []suspend.Selectable{tx, recv}
				if i%2 == 0 {
					cases[0], cases[1] = recv, tx
				}
				won, err := how(bg, cases...)
				require.NoError(t, err)
				require.Equal(t, suspend.Selectable(recv), won)
				require.Zero(t, c.Len())
				g.requireIdle(t)
			}
		})
	})
}

func TestCancelBetweenTwoLooks(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		for _, how := range []func(context.Context, ...suspend.Selectable) (suspend.Selectable, error){suspend.Select, suspend.TrySelect} {
			schedtest.Run(t, s, func() {
				ctx, cancel := context.WithCancel(bg)
				var g gauge
				looks := 0
				won, err := how(ctx, suspend.CaseOf(g.atLeast(1, func() {
					looks++
					g.add(1)
					cancel()
				})))
				require.Nil(t, won)
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 1, looks)
				g.requireIdle(t)
			})
		}
	})
}

// A Then that looks again can be cancelled once, and leaves no waiter behind.
func TestCancelAThenThatLooksAgain(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on, ok := suspend.As[suspend.Executor](s)
		require.True(t, ok)
		ctx, cancel := context.WithCancel(bg)
		var g gauge
		ended := make(chan error, 2)
		schedtest.Run(t, s, func() {
			suspend.Then(ctx, g.atLeast(100, nil), on, func(_ int, err error) { ended <- err })
			for range 3 {
				schedtest.Eventually(t, "waits", func() bool { return g.len() == 1 })
				g.add(1)
			}
			schedtest.Eventually(t, "waits", func() bool { return g.len() == 1 })
			cancel()
			schedtest.Eventually(t, "ended", func() bool { return len(ended) == 1 })
		})
		require.ErrorIs(t, <-ended, context.Canceled)
		g.requireIdle(t)
	})
}

// If another operation of the Then is ready, the Preparer is dropped before the continuation is called.
func TestAThenThatDropsAPreparer(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		on, ok := suspend.As[suspend.Executor](s)
		require.True(t, ok)
		schedtest.Run(t, s, func() {
			var g gauge
			c := chanx.New[int](1)
			_, _ = c.TrySend(1)
			v, err := suspend.Suspend(bg, func(r suspend.Resumer[int]) (int, bool) {
				suspend.Then(bg, suspend.Choose(g.atLeast(100, nil), c.RecvOp()), on, func(v int, err error) { r.Resume(v, err) })
				return 0, false
			})
			require.NoError(t, err)
			require.Equal(t, 1, v)
			g.requireIdle(t)
		})
	})
}

// A Prepare that panics leaves no waiter behind.
func TestAPrepareThatPanics(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		schedtest.Run(t, s, func() {
			var g gauge
			var c chanx.Chan[int]
			op := g.atLeast(1, func() { panic("ouch") })
			schedtest.Panics(t, "ouch", func() { _, _ = suspend.Select(bg, suspend.CaseOf(c.RecvOp()), suspend.CaseOf(op)) })
			ctx, cancel := context.WithCancel(bg)
			schedtest.Panics(t, "ouch", func() {
				suspend.Then(ctx, op, s.(suspend.Executor), func(int, error) { t.Error("called") })
			})
			cancel()
			sent, err := c.TrySend(1)
			require.NoError(t, err)
			require.False(t, sent)
			g.requireIdle(t)
		})
	})
}

// A Select that looks again does not restart its timeouts. The next Select with the same cases does.
func TestTimeoutOfASelectThatLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_ = fifo.Run(bg, func(ctx context.Context) error {
			var g gauge
			tx, late := suspend.CaseOf(g.atLeast(100, nil)), suspend.CaseOf(suspend.After(10*time.Second))
			_ = suspend.Here().Go(func() {
				for range 15 {
					_ = suspend.Sleep(ctx, time.Second)
					g.add(1)
				}
			})
			for range 2 {
				begun := time.Now()
				won, err := suspend.Select(ctx, tx, late)
				require.NoError(t, err)
				require.Equal(t, suspend.Selectable(late), won)
				require.Equal(t, 10*time.Second, time.Since(begun))
				g.requireIdle(t)
			}
			return nil
		})
	})
	synctest.Test(t, func(t *testing.T) {
		s := fifo.New(fifo.Options{})
		_ = s.Run(bg, func(ctx context.Context) error {
			var g gauge
			begun, ended := time.Now(), time.Time{}
			op := suspend.Map(suspend.After(10*time.Second), func(time.Time, error) (int, error) { return 0, nil })
			suspend.Then(ctx, suspend.Choose(g.atLeast(100, nil), op), s, func(int, error) { ended = time.Now() })
			for range 15 {
				_ = suspend.Sleep(ctx, time.Second)
				g.add(1)
			}
			require.Equal(t, 10*time.Second, ended.Sub(begun))
			g.requireIdle(t)
			return nil
		})
	})
}

// Between two looks, the timers of the other cases are stopped. However often the Select looks, only one timer is set at a time.
func TestOneTimerOverManyLooks(t *testing.T) {
	never := suspend.Map(suspend.After(time.Hour), func(time.Time, error) (int, error) { return 0, nil })
	for name, perform := range map[string]func(ctx context.Context, v *schedtest.Virtual, op suspend.Op[int]){
		"Select": func(ctx context.Context, _ *schedtest.Virtual, op suspend.Op[int]) {
			_, _ = suspend.Select(ctx, suspend.CaseOf(op), suspend.CaseOf(never))
		},
		"Then": func(ctx context.Context, v *schedtest.Virtual, op suspend.Op[int]) {
			suspend.Then(ctx, suspend.Choose(op, never), v, func(int, error) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gauge
				v := schedtest.NewVirtual()
				ctx, cancel := context.WithCancel(bg)
				go v.Bind(func() { perform(ctx, v, g.atLeast(100, nil)) })
				for range 3 {
					synctest.Wait()
					require.Equal(t, 1, v.Timers())
					g.add(1)
				}
				cancel()
				synctest.Wait()
				require.Zero(t, v.Timers())
				g.requireIdle(t)
			})
		})
	}
}

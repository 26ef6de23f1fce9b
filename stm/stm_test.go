package stm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/adapters/fifo"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/mutex"
	"github.com/braidgo/braid/promise"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/sched"
)

var (
	bg      = context.Background()
	errOops = errors.New("oops")
)

func add(v *stm.Var[int], n int) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error { v.Set(tx, v.Get(tx)+n); return nil }
}

func take(v *stm.Var[int]) func(tx *stm.Tx) error {
	return func(tx *stm.Tx) error {
		if v.Get(tx) == 0 {
			return stm.Retry
		}
		return add(v, -1)(tx)
	}
}

// quicker commits f on another goroutine, while a transaction of the caller runs.
func quicker(f func(tx *stm.Tx) error) {
	suspend.Bind(sched.NewThread(), func() { _, _ = stm.Try(f) })
}

// on runs body as a task of every scheduler.
func on(t *testing.T, body func(t *testing.T)) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) { schedtest.Run(t, s, func() { body(t) }) })
}

func TestCommitsAreAtomic(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const tasks, moves = 4, 200
		var x, y stm.Var[int]
		var fs []func()
		for range tasks {
			fs = append(fs, func() {
				for range moves {
					if err := stm.Atomically(bg, func(tx *stm.Tx) error {
						a, b := x.Get(tx), y.Get(tx)
						if a+b != 0 { // an inconsistent run would see this
							t.Errorf("%d and %d", a, b)
						}
						x.Set(tx, a+1)
						y.Set(tx, b-1)
						return nil
					}); err != nil {
						t.Error(err)
					}
					suspend.Yield()
				}
			})
		}
		schedtest.Run(t, s, fs...)
		require.Equal(t, tasks*moves, x.Load())
		require.Equal(t, -tasks*moves, y.Load())
	})
}

func TestDoReturnsTheResultOfTheRunThatCommits(t *testing.T) {
	on(t, func(t *testing.T) {
		v, runs := stm.NewVar("a"), 0
		got, err := stm.Do(bg, func(tx *stm.Tx) (string, error) {
			s := v.Get(tx)
			if runs++; runs == 1 {
				quicker(func(tx *stm.Tx) error { v.Set(tx, "b"); return nil })
			}
			v.Set(tx, s+"c")
			return s, nil
		})
		require.NoError(t, err)
		require.Equal(t, "b", got)
		require.Equal(t, "bc", v.Load())
		require.Equal(t, 2, runs)
		got, err = stm.Do(bg, func(*stm.Tx) (string, error) { return "not this", errOops })
		require.ErrorIs(t, err, errOops)
		require.Empty(t, got)
	})
}

// A commit wakes a transaction that has read one of its Vars, in any branch, and no other transaction.
func TestRetryWaitsForWhatWasRead(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var x, y, z stm.Var[int]
		var runs atomic.Int32
		schedtest.Run(t, s, func() {
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
				runs.Add(1)
				return stm.OrElse(tx, take(&x), take(&y))
			}))
		}, func() {
			schedtest.Eventually(t, "waits", func() bool { return x.Linked() == 1 && y.Linked() == 1 })
			require.NoError(t, stm.Atomically(bg, add(&z, 1)))
			require.Equal(t, 1, x.Linked())
			require.NoError(t, stm.Atomically(bg, add(&y, 1)))
		})
		require.Equal(t, []int{0, 0, 1}, []int{x.Load(), y.Load(), z.Load()})
		require.EqualValues(t, 2, runs.Load())
		require.Zero(t, x.Linked()+y.Linked())
	})
}

func TestRetryMayBeWrapped(t *testing.T) {
	v := stm.NewVar(0)
	ok, err := stm.Try(func(tx *stm.Tx) error { v.Get(tx); return fmt.Errorf("empty: %w", stm.Retry) })
	require.NoError(t, err)
	require.False(t, ok)
}

func TestRetryOfWhatHasReadNothingPanics(t *testing.T) {
	on(t, func(t *testing.T) {
		const text = "stm: Retry in a transaction that has read no Var"
		var v stm.Var[int]
		schedtest.Panics(t, text, func() { _ = stm.Atomically(bg, func(*stm.Tx) error { return stm.Retry }) })
		schedtest.Panics(t, text, func() {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error {
				v.Set(tx, 1)
				v.Get(tx) // returns its own write, so it is not a read of v
				return stm.OrElse(tx)
			})
		})
		ok, err := stm.Try(func(*stm.Tx) error { return stm.Retry })
		require.False(t, ok)
		require.NoError(t, err)
		require.NoError(t, stm.Atomically(bg, add(&v, 1)))
	})
}

func TestAnErrorWritesNothing(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		fails := func(tx *stm.Tx) error { v.Set(tx, 1); return errOops }
		require.Equal(t, errOops, stm.Atomically(bg, fails))
		ok, err := stm.Try(fails)
		require.False(t, ok)
		require.Equal(t, errOops, err)
		require.Zero(t, v.Load())
	})
}

func TestPanicAndGoexitWriteNothing(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		schedtest.Panics(t, "ouch", func() {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, 1); panic("ouch") })
		})
		runs := 0
		schedtest.Panics(t, "late", func() { // the panic of a doomed run is dropped with the run
			_ = stm.Atomically(bg, func(tx *stm.Tx) error {
				defer func() {
					_ = recover()
					panic("late")
				}()
				v.Get(tx)
				if runs++; runs == 1 {
					quicker(add(&v, 0))
				}
				v.Get(tx)
				return nil
			})
		})
		require.Equal(t, 2, runs)
		ended := make(chan struct{})
		_ = suspend.Here().Go(func() {
			defer close(ended)
			_ = stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, 1); runtime.Goexit(); return nil })
		})
		require.NoError(t, suspend.Blocking(bg, func() { <-ended }))
		require.NoError(t, stm.Atomically(bg, add(&v, 5))) // no lock is held after that
		require.Equal(t, 5, v.Load())
	})
}

func TestDoneContext(t *testing.T) {
	on(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(bg)
		cancel(errOops)
		var v stm.Var[int]
		never := func(tx *stm.Tx) error { panic("f runs") }
		_, doErr := stm.Do(ctx, func(tx *stm.Tx) (int, error) { return 0, never(tx) })
		for _, err := range []error{stm.Atomically(ctx, never), doErr} {
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errOops)
		}
		require.Zero(t, v.Load())
	})
}

func TestCancelWhileItWaits(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		ctx, cancel := context.WithCancelCause(bg)
		var x, y stm.Var[int]
		schedtest.Run(t, s, func() {
			err := stm.Atomically(ctx, func(tx *stm.Tx) error {
				y.Set(tx, 7)
				return stm.OrElse(tx, take(&x), func(tx *stm.Tx) error { y.Get(tx); x.Get(tx); return stm.Retry })
			})
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errOops)
			require.Zero(t, x.Linked()+y.Linked())
			require.Zero(t, y.Load())
		}, func() {
			schedtest.Eventually(t, "waits", func() bool { return x.Linked() == 1 })
			cancel(errOops)
		})
	})
}

// Either the cancellation or the change wins, and the result says which.
func TestCancelMeetsAChange(t *testing.T) {
	schedtest.Mixed(t, func(t *testing.T, next func() suspend.Spawner) {
		rounds := 300
		if testing.Short() {
			rounds = 50
		}
		var taken, cancelled int
		for range rounds {
			ctx, cancel := context.WithCancel(bg)
			var v stm.Var[int]
			var err error
			ended := make(chan struct{}, 3)
			for _, f := range []func(){
				func() { err = stm.Atomically(ctx, take(&v)) },
				func() { _ = stm.Atomically(bg, add(&v, 1)) },
				cancel,
			} {
				_ = next().Go(func() { f(); ended <- struct{}{} })
			}
			for range 3 {
				<-ended
			}
			if err == nil {
				taken++
				require.Zero(t, v.Load())
			} else {
				cancelled++
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 1, v.Load())
			}
			require.Zero(t, v.Linked())
		}
		t.Logf("taken %d times, cancelled %d times", taken, cancelled)
	})
}

func TestCancelBetweenTwoRuns(t *testing.T) {
	on(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(bg)
		var v stm.Var[int]
		runs := 0
		err := stm.Atomically(ctx, func(tx *stm.Tx) error {
			runs++
			n := v.Get(tx)
			quicker(add(&v, 1))
			cancel()
			v.Set(tx, n+100)
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 1, runs)
		require.Equal(t, 1, v.Load())

		ctx, cancel = context.WithCancel(bg)
		require.NoError(t, stm.Atomically(ctx, func(tx *stm.Tx) error { cancel(); return add(&v, 1)(tx) }), "no other transaction conflicts with it")
	})
}

func TestSuspendingPanics(t *testing.T) {
	on(t, func(t *testing.T) {
		var p promise.Promise[int]
		var m mutex.Mutex
		c := chanx.New[int](0)
		m.Lock()
		var v stm.Var[int]
		for _, f := range []func(){
			func() { _, _ = p.Await(bg) },
			func() { m.Lock() },
			func() { _ = c.Send(bg, 1) },
			func() { _, _ = c.Recv(bg) },
			func() { _ = suspend.Sleep(bg, time.Hour) },
			func() { _ = suspend.Blocking(bg, func() {}) },
			func() { _, _ = suspend.Select(bg, suspend.CaseOf(c.RecvOp()), suspend.CaseOf(p.AwaitOp())) },
		} {
			schedtest.Panics(t, "stm: a transaction must not suspend", func() {
				_ = stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, 1); f(); return nil })
			})
		}
		m.Unlock()
		require.NoError(t, m.LockContext(bg)) // no transaction waits for it
		m.Unlock()
		sent, err := c.TrySend(1)
		require.NoError(t, err)
		require.False(t, sent)
		require.Zero(t, v.Load())
	})
}

func TestATransactionInsideATransactionPanics(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		for _, f := range []func(){
			func() { _ = stm.Atomically(bg, add(&v, 1)) },
			func() { _, _ = stm.Do(bg, func(tx *stm.Tx) (int, error) { return v.Get(tx), nil }) },
			func() { _, _ = stm.Try(add(&v, 1)) },
		} {
			schedtest.Panics(t, "stm: transaction inside a transaction", func() {
				_ = stm.Atomically(bg, func(*stm.Tx) error { f(); return nil })
			})
		}
		require.Zero(t, v.Load())
	})
}

// A callback must not suspend either, but it is not a transaction.
func TestTryInACallback(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		suspend.Bind(nil, func() {
			ok, err := stm.Try(add(&v, 1))
			require.True(t, ok)
			require.NoError(t, err)
		})
		require.Equal(t, 1, v.Load())
	})
}

func TestTxAfterItsEndPanics(t *testing.T) {
	on(t, func(t *testing.T) {
		var v stm.Var[int]
		var kept *stm.Tx
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { kept = tx; return nil }))
		for _, f := range []func(){
			func() { v.Get(kept) },
			func() { v.Set(kept, 1) },
			func() { kept.AfterCommit(func() {}) },
			func() { _ = stm.Nested(kept, func(*stm.Tx) error { return nil }) },
			func() { _ = stm.OrElse(kept, func(*stm.Tx) error { return nil }) },
		} {
			schedtest.Panics(t, "stm: Tx used after the end of its transaction", f)
		}
	})
}

// A conflict unwinds f. If f recovers the panic, the run is dropped anyway.
func TestADoomedRunStaysDoomed(t *testing.T) {
	on(t, func(t *testing.T) {
		var x, y stm.Var[int]
		runs, panics := 0, 0
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			runs++
			x.Get(tx)
			if runs == 1 {
				quicker(func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 1); return nil })
			}
			for range 3 {
				func() {
					defer func() {
						if recover() != nil {
							panics++
						}
					}()
					y.Set(tx, y.Get(tx)+1)
				}()
			}
			return nil
		}))
		require.Equal(t, 2, runs)
		require.Equal(t, 3, panics)
		require.Equal(t, 4, y.Load())
	})
}

// ways lists the ways to perform a transaction: by itself, and as a case of a Select whose other case is never ready.
var ways = map[string]func(ctx context.Context, f func(tx *stm.Tx) error) error{
	"by itself": stm.Atomically,
	"as a case": func(ctx context.Context, f func(tx *stm.Tx) error) error {
		never := suspend.CaseOf(chanx.New[int](0).RecvOp())
		mine := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (int, error) { return 0, f(tx) }))
		won, err := suspend.Select(ctx, never, mine)
		if won == suspend.Selectable(mine) {
			_, err = mine.Result()
		}
		return err
	},
}

// A long transaction among short ones commits, because the short ones eventually wait for it.
func TestTheElderCommits(t *testing.T) {
	for way, atomically := range ways {
		schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
			var v stm.Var[int]
			var done atomic.Bool
			runs, added := 0, make([]int, 3)
			fs := []func(){func() {
				defer done.Store(true)
				require.NoError(t, atomically(bg, func(tx *stm.Tx) error {
					n := v.Get(tx)
					if runs++; runs <= stm.Patience {
						quicker(add(&v, 1))
					}
					for range 10 { // with one processor, each may take a time slice
						runtime.Gosched() // lets the others commit first, as often as they can
					}
					v.Set(tx, n+1000)
					return nil
				}))
			}}
			for i := range added {
				fs = append(fs, func() {
					for !done.Load() {
						require.NoError(t, stm.Atomically(bg, add(&v, 1)))
						added[i]++
						suspend.Yield()
					}
				})
			}
			schedtest.Run(t, s, fs...)
			require.Equal(t, stm.Patience+1, runs, way)
			require.Equal(t, 1000+stm.Patience+added[0]+added[1]+added[2], v.Load(), way)
		})
	}
}

// If the elder waits, fails, panics or is cancelled, the others can commit.
func TestTheElderStepsDown(t *testing.T) {
	on(t, func(t *testing.T) {
		for name, end := range map[string]func(cancel func()) error{
			"retry":  func(func()) error { return stm.Retry },
			"error":  func(func()) error { return errOops },
			"panic":  func(func()) error { panic(errOops) },
			"cancel": func(cancel func()) error { cancel(); quickerThanTheElder(); return nil },
		} {
			for way, atomically := range ways {
				ctx, cancel := context.WithCancel(bg)
				v, runs := &shared, 0
				ended := make(chan struct{})
				require.NoError(t, suspend.Here().Go(func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_ = atomically(ctx, func(tx *stm.Tx) error {
						n := v.Get(tx)
						v.Set(tx, n)
						if runs++; runs <= stm.Patience {
							quicker(add(v, 1))
							return nil
						}
						return end(cancel)
					})
				}))
				schedtest.Eventually(t, name, func() bool {
					select {
					case <-ended:
						return true
					default:
						return v.Linked() == 1
					}
				})
				require.NoError(t, stm.Atomically(bg, add(v, 1)), "%s, %s", name, way)
				cancel()
				require.NoError(t, suspend.Blocking(bg, func() { <-ended }))
			}
		}
	})
}

var shared stm.Var[int]

// quickerThanTheElder commits a transaction that need not wait for the elder.
func quickerThanTheElder() { quicker(add(&shared, 1)) }

func TestWaitersAreWokenInOrder(t *testing.T) {
	schedtest.OnFIFO(t, func(*fifo.Scheduler) {
		var v stm.Var[int]
		var order []int
		const n = 20
		for i := range n {
			_ = suspend.Here().Go(func() {
				_ = stm.Atomically(bg, func(tx *stm.Tx) error {
					if v.Get(tx) == 0 {
						return stm.Retry
					}
					return nil
				})
				order = append(order, i)
			})
		}
		schedtest.Settle()
		require.Equal(t, n, v.Linked())
		require.NoError(t, stm.Atomically(bg, add(&v, 1)))
		schedtest.Settle()
		require.Len(t, order, n)
		require.True(t, slices.IsSorted(order), order)
	})
}

// A commit synchronizes before the return of a Get that sees its effect. The race detector checks this.
func TestMemoryModel(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var v stm.Var[*int]
		var ready stm.Var[bool]
		plain, loaded := 0, 0
		schedtest.Run(t, s, func() {
			n := 42
			plain, loaded = 1, 1
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { v.Set(tx, &n); ready.Set(tx, true); return nil }))
		}, func() {
			p, err := stm.Do(bg, func(tx *stm.Tx) (*int, error) {
				if v.Get(tx) == nil {
					return nil, stm.Retry
				}
				return v.Get(tx), nil
			})
			require.NoError(t, err)
			require.Equal(t, []int{42, 1}, []int{*p, plain})
		}, func() {
			schedtest.Eventually(t, "ready", ready.Load)
			require.Equal(t, 1, loaded)
		})
	})
}

func TestTheZeroVar(t *testing.T) {
	var v stm.Var[string]
	require.Empty(t, v.Load())
	var w stm.Var[string]
	require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
		require.Empty(t, w.Get(tx))
		require.Empty(t, w.Get(tx))
		w.Set(tx, "x")
		require.Equal(t, "x", w.Get(tx))
		schedtest.Panics(t, "stm: Load called in a transaction: use Get", func() { w.Load() })
		return nil
	}))
	require.Equal(t, "x", w.Load())
}

// A copy of a Var panics, because it would not see the commits that change the original.
func TestACopiedVarPanics(t *testing.T) {
	v := *stm.NewVar(1) // go vet accepts this as an initialisation
	for _, f := range []func(tx *stm.Tx){func(tx *stm.Tx) { v.Get(tx) }, func(tx *stm.Tx) { v.Set(tx, 1) }} {
		schedtest.Panics(t, "stm: Var copied", func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { f(tx); return nil }) })
	}
}

// A Set without a Get conflicts with no other transaction.
func TestABlindSet(t *testing.T) {
	var v stm.Var[int]
	runs := 0
	require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
		runs++
		quicker(add(&v, 1))
		v.Set(tx, 7)
		return nil
	}))
	require.Equal(t, 1, runs)
	require.Equal(t, 7, v.Load())
}

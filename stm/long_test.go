package stm_test

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// The tests of this file are about long transactions, many Gets, deep nesting, many waiters, and long cases.

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The log of reads has one entry for each Var, not for each Get.
func TestManyGetsOfFewVars(t *testing.T) {
	vars := make([]stm.Var[int], 300)
	for _, n := range []int{1, 2, 3, 300} {
		bytes := allocated(func() {
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
				sum := 0
				for i := range 1_000_000 {
					sum += vars[i%n].Get(tx)
				}
				require.Zero(t, sum)
				vars[0].Set(tx, 0)
				return nil
			}))
		})
		require.Less(t, bytes, uint64(1<<20), "%d Vars", n)
	}
}

// If the log dropped a Var that is read again, a run would commit although the Var has changed.
func TestWhatIsReadAgainIsLookedAt(t *testing.T) {
	vars := make([]stm.Var[int], 400)
	other, hot := stm.NewVar(0), stm.NewVar(0)
	for i := range vars {
		runs := 0
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			for j := range vars {
				vars[j].Get(tx)
			}
			for range 8000 {
				hot.Get(tx)
			}
			if runs++; runs == 1 {
				quicker(add(&vars[i], 1))
			}
			other.Set(tx, 1)
			return nil
		}))
		require.Equal(t, 2, runs, "Var %d has changed", i)
	}
}

// The memory of a long transaction is kept for its next run. To allocate it again would cost thirty times as much.
func TestTheRoomOfALongTransactionIsKept(t *testing.T) {
	vars := make([]stm.Var[int], 100_000)
	scan := func(tx *stm.Tx) (s int, _ error) {
		for i := range vars {
			s += vars[i].Get(tx)
		}
		return s, nil
	}
	for name, f := range map[string]func(){
		"Do":     func() { _, _ = stm.Do(bg, scan) },
		"a case": func() { _, _ = suspend.Do(bg, stm.Op(scan)) },
	} {
		least := uint64(1 << 62)
		for range 20 { // repeats: a collection empties the pool, and the race detector drops a quarter of its items
			f()
			if least = min(least, allocated(f)); least < 4096 {
				break
			}
		}
		require.Less(t, least, uint64(4096), name)
	}
}

// Deeply nested levels keep the writes of the levels inside them.
func TestNestedIsLinear(t *testing.T) {
	const deep = 4_000
	vars := make([]stm.Var[int], deep)
	var nest func(tx *stm.Tx, i, n int) error
	nest = func(tx *stm.Tx, i, n int) error {
		if i == n {
			return nil
		}
		vars[i].Set(tx, vars[i].Get(tx)+1)
		err := stm.Nested(tx, func(tx *stm.Tx) error { return nest(tx, i+1, n) })
		if i > 0 { // a Var that the outer level has written, too
			vars[i-1].Set(tx, vars[i-1].Get(tx)+1)
		}
		return err
	}
	for _, n := range []int{deep / 16, deep} {
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { return nest(tx, 0, n) }))
	}
	for i := range vars {
		want := 2 // in the deeper nest each level adds one, and the next level adds one again
		switch {
		case i < deep/16-1:
			want = 2 * 2
		case i == deep/16-1:
			want = 1 + 2
		case i == deep-1:
			want = 1
		}
		require.Equal(t, want, vars[i].Load(), i)
	}
}

// The log of writes has one entry for each Var and level, whatever has happened before.
func TestTheLogOfWrites(t *testing.T) {
	for _, n := range []int{3, 2 * stm.Few} {
		vars := make([]stm.Var[int], n)
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			for i := range vars {
				vars[i].Set(tx, i)
			}
			check := func(want int) {
				_, writes := tx.Log()
				require.Equal(t, n, writes)
				for i := range vars {
					require.Equal(t, map[bool]int{true: want, false: i}[i == 1], vars[i].Get(tx))
				}
			}
			require.Equal(t, errOops, stm.Nested(tx, func(tx *stm.Tx) error { vars[1].Set(tx, 99); return errOops }))
			check(1)
			schedtest.Panics(t, "ouch", func() { _ = stm.Nested(tx, func(tx *stm.Tx) error { vars[1].Set(tx, 98); panic("ouch") }) })
			vars[1].Set(tx, 2)
			check(2)
			for own := range 4 { // the outer or the inner level has more writes
				for inner := range 4 {
					require.NoError(t, stm.Nested(tx, func(tx *stm.Tx) error {
						for i := range own {
							vars[i%n].Set(tx, 100+i)
						}
						require.NoError(t, stm.Nested(tx, func(tx *stm.Tx) error {
							for i := range inner {
								vars[(i+1)%n].Set(tx, 200+i)
							}
							return nil
						}))
						for i := range max(own, inner+1) {
							switch {
							case i >= 1 && i <= inner && i < n:
								require.Equal(t, 199+i, vars[i].Get(tx))
							case i < own && i < n && inner < n:
								require.Equal(t, 100+i, vars[i].Get(tx))
							}
						}
						for i := range vars {
							vars[i].Set(tx, i)
						}
						vars[1].Set(tx, 2)
						return nil
					}))
					check(2)
				}
			}
			return nil
		}))
		require.Equal(t, 2, vars[1].Load())
	}
}

// A commit resumes many waiters in portions, in the order in which they came, and each of them once.
func TestACommitResumesACrowd(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		const n = 5*stm.Portion + 7
		var gate stm.Var[int]
		other := stm.NewVar(0)
		ctx, cancel := context.WithCancel(bg)
		var runs, passed, gone atomic.Int64
		fs := make([]func(), 0, n+1)
		for i := range n {
			ctx := ctx
			if i%5 != 0 { // every fifth waiter may be cancelled
				ctx = bg
			}
			fs = append(fs, func() {
				err := stm.Atomically(ctx, func(tx *stm.Tx) error {
					runs.Add(1)
					if i%3 == 0 {
						other.Get(tx) // links the waiter to two Vars
					}
					if gate.Get(tx) == 0 {
						return stm.Retry
					}
					return nil
				})
				if err == nil {
					passed.Add(1)
				} else {
					gone.Add(1)
				}
			})
		}
		fs = append(fs, func() {
			schedtest.Eventually(t, "all wait", func() bool { return gate.Linked() == n })
			cancelled := make(chan struct{})
			go func() { cancel(); close(cancelled) }()
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { gate.Set(tx, 1); other.Set(tx, 1); return nil }))
			_ = suspend.Blocking(bg, func() { <-cancelled })
		})
		schedtest.Run(t, s, fs...)
		cancel()
		require.EqualValues(t, n, passed.Load()+gone.Load())
		require.LessOrEqual(t, runs.Load(), int64(2*n))
		require.LessOrEqual(t, gone.Load(), int64(n/5+1))
		require.Zero(t, gate.Linked()+other.Linked())
	})
}

// A transaction that waits behind the elder can be cancelled.
func TestCancelBehindTheElder(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	var v stm.Var[int]
	isElder, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	runs := 0
	go func() {
		ended <- stm.Atomically(bg, func(tx *stm.Tx) error {
			n := v.Get(tx)
			if runs++; runs <= stm.Patience {
				quicker(add(&v, 1))
			} else {
				close(isElder)
				<-release
			}
			v.Set(tx, n)
			return nil
		})
	}()
	<-isElder
	for _, other := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return stm.Atomically(ctx, add(&v, 1)) },
		func(ctx context.Context) error {
			_, err := suspend.Do(ctx, stm.Op(func(tx *stm.Tx) (int, error) { return 0, add(&v, 1)(tx) }))
			return err
		},
	} {
		ctx, cancel := context.WithCancel(bg)
		other1 := make(chan error)
		go func() { other1 <- other(ctx) }()
		schedtest.Eventually(t, "it waits", func() bool { return stm.Younger() == 1 })
		cancel()
		require.ErrorIs(t, <-other1, context.Canceled)
		require.Zero(t, stm.Younger())
	}
	close(release)
	require.NoError(t, <-ended)
	require.Equal(t, stm.Patience, v.Load())
}

// A transaction that finds its value and does not set it wakes no waiter. A Set of the same value does.
func TestSetOfTheSameValue(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		v, w := stm.NewVar("a"), stm.NewVar(0)
		var runs []string
		change := func(x string) (changed bool) {
			changed, err := stm.Do(bg, func(tx *stm.Tx) (bool, error) {
				if v.Get(tx) == x {
					return false, nil
				}
				v.Set(tx, x)
				return true, nil
			})
			require.NoError(t, err)
			return changed
		}
		schedtest.Run(t, s, func() {
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
				runs = append(runs, v.Get(tx))
				if w.Get(tx) == 0 {
					return stm.Retry
				}
				return nil
			}))
		}, func() {
			waits := func() { schedtest.Eventually(t, "it waits", func() bool { return v.Linked() == 1 }) }
			waits()
			require.False(t, change("a"))
			require.Equal(t, 1, v.Linked(), "it was not woken")
			require.True(t, change("b"))
			waits()
			require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error { w.Set(tx, 1); return nil }))
		})
		require.Equal(t, []string{"a", "b", "b"}, slices.Clip(runs))
	})
}

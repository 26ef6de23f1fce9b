package stm_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// Replaced values, values of dropped runs, and closures are freed.
func TestNothingIsKept(t *testing.T) {
	schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
		var objects schedtest.Objects
		var x, y stm.Var[*schedtest.Object]
		var n stm.Var[int]
		schedtest.Run(t, s, func() {
			for i := range 10 { // replaced boxes
				in := objects.New()
				require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
					tx.AfterCommit(func() { in[0]++ })
					x.Set(tx, objects.New())
					if n.Get(tx) == i {
						quicker(add(&n, 1)) // makes this run fail
					}
					n.Get(tx)
					y.Set(tx, x.Get(tx))
					return nil
				}))
			}
			require.Error(t, stm.Atomically(bg, func(tx *stm.Tx) error { y.Set(tx, objects.New()); return errOops }))
			schedtest.Panics(t, errOops, func() {
				_ = stm.Atomically(bg, func(tx *stm.Tx) error { y.Set(tx, objects.New()); panic(errOops) })
			})
		})
		ctx, cancel := context.WithCancel(bg)
		var gate stm.Var[int]
		schedtest.Run(t, s, func() {
			in := objects.New() // by a case that was cancelled
			require.Error(t, stm.Atomically(ctx, func(tx *stm.Tx) error {
				y.Set(tx, in)
				tx.AfterCommit(func() { in[0]++ })
				return take(&gate)(tx)
			}))
		}, func() {
			schedtest.Eventually(t, "waits", func() bool { return gate.Linked() == 1 })
			cancel()
		})
		objects.Collected(t, 1) // only the values of x and y remain
		require.Same(t, x.Load(), y.Load())
	})
}

// A transaction that waits does not keep its writes.
func TestAWaiterKeepsNoWrites(t *testing.T) {
	var objects schedtest.Objects
	var x stm.Var[*schedtest.Object]
	var gate stm.Var[int]
	ended := make(chan error)
	go func() {
		ended <- stm.Atomically(bg, func(tx *stm.Tx) error {
			if gate.Get(tx) == 1 {
				return nil
			}
			x.Set(tx, objects.New())
			tx.AfterCommit(func() { _ = objects.New() })
			return stm.Retry
		})
	}()
	schedtest.Eventually(t, "waits", func() bool { return gate.Linked() == 1 })
	objects.Collected(t, 0)
	require.NoError(t, stm.Atomically(bg, add(&gate, 1)))
	require.NoError(t, <-ended)
}

// forgotten returns how many more allocations are allowed under the race detector. There, a sync.Pool drops a quarter of its
// items, and a new Tx has to grow its logs again.
func forgotten(n float64) float64 {
	if schedtest.Race {
		return n
	}
	return 0
}

func TestAllocations(t *testing.T) {
	var x, y stm.Var[int]
	var p stm.Var[*int]
	many := make([]stm.Var[int], 100)
	pointer := new(int)
	scan := func(tx *stm.Tx) error {
		for i := range many {
			many[i].Get(tx)
		}
		return nil
	}
	inc := func(tx *stm.Tx) (int, error) { x.Set(tx, x.Get(tx)+1); return 0, nil }
	op := stm.Op(inc)
	kept := suspend.CaseOf(op)
	for _, c := range []struct {
		name  string
		limit float64
		f     func()
	}{
		{"read only", 0, func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { x.Get(tx); y.Get(tx); return nil }) }},
		{"read only, 100 Vars", 0, func() { _ = stm.Atomically(bg, scan) }},
		{"Do", 0, func() { _, _ = stm.Do(bg, func(tx *stm.Tx) (int, error) { return x.Get(tx), nil }) }},
		{"Try", 0, func() { _, _ = stm.Try(func(tx *stm.Tx) error { x.Get(tx); return nil }) }},
		{"Load", 0, func() { _ = x.Load() }},
		{"a Set", 1, func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { x.Set(tx, x.Get(tx)+1); return nil }) }},
		{"a Set of a pointer", 1, func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { p.Set(tx, pointer); return nil }) }},
		{"a Set, twice", 1, func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { x.Set(tx, 1); x.Set(tx, 2); return nil }) }},
		{"two Sets", 2, func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 2); return nil }) }},
		{"a case that is kept", 1, func() { _, _ = suspend.Select(bg, kept) }},
		{"an operation that is kept", 4, func() { _, _ = suspend.Do(bg, op) }},
		{"an operation", 5, func() { _, _ = suspend.Do(bg, stm.Op(inc)) }},
		{"Nested", 1, func() {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error {
				return stm.Nested(tx, func(tx *stm.Tx) error { x.Set(tx, 1); return nil })
			})
		}},
		{"OrElse", 1, func() {
			_ = stm.Atomically(bg, func(tx *stm.Tx) error {
				return stm.OrElse(tx, func(tx *stm.Tx) error { x.Get(tx); return stm.Retry }, func(tx *stm.Tx) error { y.Set(tx, 1); return nil })
			})
		}},
	} {
		limit := c.limit + forgotten(4)
		if n := testing.AllocsPerRun(1000, c.f); n > limit {
			t.Errorf("%s: %v allocations, at most %v", c.name, n, limit)
		}
	}
}

// A Retry that waits allocates nothing. Each Set of the other transactions allocates a box.
func TestAllocationsOfAWait(t *testing.T) {
	const rounds = 200
	for _, sched := range []string{"fifo", "workstealing", "eventloop", "goroutines"} {
		t.Run(sched, func(t *testing.T) {
			for _, s := range schedtest.All {
				if s.Name != sched {
					continue
				}
				on, stop := s.Open()
				defer stop()
				var ping, pong stm.Var[int]
				play := func(from, to *stm.Var[int], n int) func() {
					return func() {
						for range n {
							_ = stm.Atomically(bg, func(tx *stm.Tx) error {
								n := from.Get(tx)
								if n == 0 {
									return stm.Retry
								}
								from.Set(tx, n-1)
								to.Set(tx, to.Get(tx)+1)
								return nil
							})
						}
					}
				}
				n := testing.AllocsPerRun(3, func() {
					schedtest.Run(t, on, play(&ping, &pong, rounds), func() {
						_ = stm.Atomically(bg, add(&ping, 1))
						play(&pong, &ping, rounds)()
						_ = stm.Atomically(bg, take(&ping))
					})
				})
				if per := (n - 50) / (2 * rounds); per > 2.1+forgotten(4) { // a box for each of two Sets
					t.Errorf("%.2f allocations", per)
				}
			}
		})
	}
}

// A case that was not chosen keeps nothing of its last run alive.
func TestACaseThatLostKeepsNothing(t *testing.T) {
	var objects schedtest.Objects
	var v stm.Var[int]
	c := suspend.CaseOf(stm.Op(func(tx *stm.Tx) (*schedtest.Object, error) {
		in := objects.New()
		tx.AfterCommit(func() { in[0]++ })
		v.Get(tx)
		return objects.New(), nil
	}))
	now := suspend.CaseOf(suspend.After(0))
	won, err := suspend.SelectOrdered(bg, now, c)
	require.NoError(t, err)
	require.Equal(t, suspend.Selectable(now), won)
	objects.Collected(t, 0)
	_, err = suspend.Select(bg, c)
	require.NoError(t, err)
	require.NotNil(t, c.Value())
}

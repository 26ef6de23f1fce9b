package suspend_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/cancel"
	"github.com/braidgo/braid/chanx"
	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/suspend"
	"github.com/braidgo/braid/suspend/census"
)

const inTwoSelects = "suspend: the same case in two Selects at a time"

// clashes reports whether a TrySelect of cases panics, because another Select waits with one of them.
func clashes(t *testing.T, cases ...suspend.Selectable) (clashed bool) {
	defer func() {
		if v := recover(); v != nil {
			require.Equal(t, inTwoSelects, v)
			clashed = true
		}
	}()
	_, _ = suspend.TrySelect(bg, cases...)
	return false
}

// A Select that waits is not disturbed by others that use its case. These panic before they perform a case that is ready, and keep
// no guard locked.
func TestOneCaseInTwoSelects(t *testing.T) {
	selects := map[string]func(context.Context, ...suspend.Selectable) (suspend.Selectable, error){
		"Select": suspend.Select, "SelectOrdered": suspend.SelectOrdered, "TrySelect": suspend.TrySelect,
	}
	for _, recorded := range []bool{false, true} {
		t.Run(map[bool]string{false: "census off", true: "census on"}[recorded], func(t *testing.T) {
			if recorded {
				defer census.Start(census.Options{})()
			}
			schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
				var m mailbox
				var prepared atomic.Int32
				ctx, end := cancel.New(bg)
				ready := chanx.New[int](1)
				_, _ = ready.TrySend(1)
				waits := map[string]suspend.Selectable{
					"a receive":   suspend.CaseOf(m.recv(any1)),
					"a choice":    suspend.CaseOf(suspend.Choose(chanx.New[int](0).RecvOp(), m.recv(any1))),
					"a prepared":  suspend.CaseOf(new(gauge).atLeast(1, func() { prepared.Add(1) })),
					"a timeout":   suspend.CaseOf(suspend.After(time.Hour)),
					"a context":   suspend.CaseOf(suspend.Done(ctx)),
					"a map of it": suspend.CaseOf(suspend.Map(m.recv(any1), func(v int, err error) (int, error) { return v, err })),
				}
				for name, shared := range waits {
					stopping := chanx.New[int](0)
					stop := suspend.CaseOf(stopping.RecvOp())
					schedtest.Run(t, s, func() {
						won, err := suspend.Select(bg, shared, stop)
						require.NoError(t, err, name)
						require.Equal(t, suspend.Selectable(stop), won, name)
						require.Equal(t, 7, stop.Value(), name)
					}, func() {
						// The Select waits when its last case does; a level begins after the others.
						schedtest.Eventually(t, name, func() bool { return clashes(t, stop) && clashes(t, shared) })
						other, before := suspend.CaseOf(ready.RecvOp()), prepared.Load()
						for how, sel := range selects {
							for range 8 { // in any order
								schedtest.Panics(t, inTwoSelects, func() { _, _ = sel(bg, other, shared) })
								schedtest.Panics(t, inTwoSelects, func() { _, _ = sel(bg, shared) })
							}
							require.Equal(t, 1, ready.Len(), how)
						}
						require.Equal(t, before, prepared.Load(), "what the other Select has prepared is left alone")
						require.NoError(t, stopping.Send(bg, 7))
					})
					require.False(t, clashes(t, shared, stop), name)
				}
				end(nil)
			})
		})
	}
}

// However a Select ends, its cases are free afterwards.
func TestACaseIsFreeAfterItsSelect(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		schedtest.Each(t, func(t *testing.T, s suspend.Spawner) {
			if recorded {
				defer census.Start(census.Options{})()
			}
			x, y := chanx.New[int](0), chanx.New[int](0)
			fromX, fromY, late := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(y.RecvOp()), suspend.CaseOf(suspend.After(time.Hour))
			free := func(how string) {
				t.Helper()
				for _, c := range []suspend.Selectable{fromX, fromY, late} {
					require.False(t, clashes(t, c), how)
				}
			}
			send := func(c *chanx.Chan[int]) func() {
				return func() { require.NoError(t, c.Send(bg, 1)) }
			}
			for range 3 {
				schedtest.Run(t, s, func() {
					won, err := suspend.Select(bg, late, fromX, fromY)
					require.NoError(t, err)
					require.Equal(t, suspend.Selectable(fromX), won)
					free("performed")
				}, send(x))
				schedtest.Run(t, s, func() {
					ctx, end := cancel.New(bg)
					soon := suspend.CaseOf(suspend.Done(ctx))
					require.NoError(t, s.Go(func() { end(nil) }))
					won, err := suspend.Select(bg, late, soon, fromX)
					require.NoError(t, err)
					require.Equal(t, suspend.Selectable(soon), won)
					require.False(t, clashes(t, soon))
					free("a level")
				})
				schedtest.Run(t, s, func() {
					ctx, end := cancel.New(bg)
					require.NoError(t, s.Go(func() { end(nil) }))
					won, err := suspend.Select(ctx, fromX, fromY, late)
					require.Nil(t, won)
					require.ErrorIs(t, err, context.Canceled)
					free("cancelled")
				})
				schedtest.Run(t, s, func() {
					won, err := suspend.TrySelect(bg, fromX, fromY, late)
					require.Nil(t, won)
					require.NoError(t, err)
					free("tried")
				})
			}
		})
	}
}

// A task that is killed in its Select leaves its cases free.
func TestACaseIsFreeAfterAKill(t *testing.T) {
	x := chanx.New[int](0)
	fromX, late := suspend.CaseOf(x.RecvOp()), suspend.CaseOf(suspend.After(time.Hour))
	killed := func(cases ...suspend.Selectable) {
		returned := onMortal(t, func(*mortal) {}, func(*mortal) { _, _ = suspend.Select(bg, cases...) })
		require.False(t, returned)
		for _, c := range cases {
			require.False(t, clashes(t, c))
		}
	}
	killed(fromX)
	killed(fromX, late)
	defer census.Start(census.Options{})()
	killed(fromX, late)
}

// Many goroutines at once look at a case with which another waits. Each of them panics, and the value arrives.
func TestManySelectsLookAtACaseThatWaits(t *testing.T) {
	defer schedtest.Within(t, schedtest.Deadline)()
	c := chanx.New[int](0)
	shared := suspend.CaseOf(c.RecvOp())
	late := suspend.CaseOf(suspend.After(time.Hour))
	for i := range 200 {
		var all sync.WaitGroup
		all.Go(func() {
			won, err := suspend.Select(bg, shared, late)
			require.NoError(t, err)
			require.Equal(t, suspend.Selectable(shared), won)
			require.Equal(t, i, shared.Value())
		})
		schedtest.Eventually(t, "waits", func() bool { return clashes(t, late) && clashes(t, shared) })
		var clashed atomic.Int32
		var lookers sync.WaitGroup
		for k := range 8 {
			lookers.Go(func() {
				if clashes(t, []suspend.Selectable{shared, late}[k%2]) {
					clashed.Add(1)
				}
			})
		}
		lookers.Wait()
		require.EqualValues(t, 8, clashed.Load())
		require.NoError(t, c.Send(bg, i))
		all.Wait()
	}
}

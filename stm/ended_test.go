package stm_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/braidgo/braid/internal/testrig/schedtest"
	"github.com/braidgo/braid/stm"
	"github.com/braidgo/braid/suspend"
)

// The Tx of a case that was not chosen has ended, even if its function panicked.
func TestTheTxOfACaseThatWasNotChosen(t *testing.T) {
	var v stm.Var[int]
	var kept *stm.Tx
	lost := func(tx *stm.Tx) (int, error) { kept = tx; return v.Get(tx), stm.Retry }
	won, err := suspend.TrySelect(bg, suspend.CaseOf(stm.Op(lost)))
	require.NoError(t, err)
	require.Nil(t, won)
	schedtest.Panics(t, "stm: Tx used after the end of its transaction", func() { v.Get(kept) })

	panics := func(tx *stm.Tx) (int, error) { kept = tx; panic("oops") }
	schedtest.Panics(t, "oops", func() { _, _ = suspend.Do(bg, stm.Op(panics)) })
	schedtest.Panics(t, "stm: Tx used after the end of its transaction", func() { v.Get(kept) })
}

// Each function of AfterCommit is called once, in order, whatever the functions before it do.
func TestAfterCommitBehindOneThatPanics(t *testing.T) {
	for name, perform := range map[string]func(f func(tx *stm.Tx) error){
		"Atomically": func(f func(tx *stm.Tx) error) { _ = stm.Atomically(bg, f) },
		"Try":        func(f func(tx *stm.Tx) error) { _, _ = stm.Try(f) },
		"Op": func(f func(tx *stm.Tx) error) {
			_, _ = suspend.Do(bg, stm.Op(func(tx *stm.Tx) (int, error) { return 0, f(tx) }))
		},
	} {
		var called []int
		ended := make(chan any)
		go func() {
			defer func() { ended <- recover() }()
			perform(func(tx *stm.Tx) error {
				tx.AfterCommit(func() { called = append(called, 1); panic("one") })
				tx.AfterCommit(func() { called = append(called, 2) })
				tx.AfterCommit(func() { called = append(called, 3); panic("three") })
				tx.AfterCommit(func() { called = append(called, 4) })
				return nil
			})
		}()
		require.Equal(t, "three", <-ended, name)
		require.Equal(t, []int{1, 2, 3, 4}, called, name)

		called = nil
		go func() {
			defer func() { ended <- recover() }()
			perform(func(tx *stm.Tx) error {
				tx.AfterCommit(runtime.Goexit)
				tx.AfterCommit(func() { called = append(called, 2) })
				return nil
			})
		}()
		require.Nil(t, <-ended, name)
		require.Equal(t, []int{2}, called, name)
	}
}

// A run that has a conflict is dropped even if its function turns the conflict into a panic of its own.
func TestAConflictThatIsWrapped(t *testing.T) {
	on(t, func(t *testing.T) {
		var x, y stm.Var[int]
		runs := 0
		require.NoError(t, stm.Atomically(bg, func(tx *stm.Tx) error {
			defer func() {
				if p := recover(); p != nil {
					panic(fmt.Errorf("in my transaction: %v", p))
				}
			}()
			runs++
			x.Get(tx)
			if runs == 1 {
				quicker(func(tx *stm.Tx) error { x.Set(tx, 1); y.Set(tx, 1); return nil })
			}
			y.Get(tx)
			return nil
		}))
		require.Equal(t, 2, runs)
	})
}

// A nil function panics before the call has any effect.
func TestNilFunctions(t *testing.T) {
	for _, f := range []func(){
		func() { _ = stm.Atomically(bg, nil) },
		func() { _, _ = stm.Do[int](bg, nil) },
		func() { _, _ = stm.Try(nil) },
		func() { stm.Op[int](nil) },
		func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { tx.AfterCommit(nil); return nil }) },
		func() { _ = stm.Atomically(bg, func(tx *stm.Tx) error { return stm.Nested(tx, nil) }) },
	} {
		schedtest.Panics(t, "stm: nil function", f)
	}
}
